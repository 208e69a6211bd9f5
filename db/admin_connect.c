/* The blocking connection behind db/admin: finding a server that can be used, and error messages. */
#include "db/admin_internal.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/hosts.h"
#include "server/log.h"
#include "server/loop.h"

enum {
    MIN_SERVER_VERSION = 150000,
    STARTING_WAIT_MS = 60 * 1000,
    PAUSE_MS = 200,
    REMIND_US = 10 * 1000 * 1000,
};

/* The last server that could not be used. */
struct refusal {
    char host[HOSTS_NAME_SIZE], reason[HOSTS_REASON_SIZE];
    enum hosts_cause cause;
};

static void notice(void *unused, const char *text)
{
    char line[HOSTS_REASON_SIZE];
    (void)unused;
    log_event(LOG_DEBUG, "db_notice", "reason=\"%s\"", hosts_reason(text, line));
}

static bool is_usable(PGconn *pg)
{
    const char *encoding = PQparameterStatus(pg, "server_encoding");
    if (PQserverVersion(pg) < MIN_SERVER_VERSION)
        return log_failure("PostgreSQL %d or newer is needed, this is %s", MIN_SERVER_VERSION / 10000,
                           PQparameterStatus(pg, "server_version"));
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return log_failure("the database %s has the encoding %s: Daybook needs UTF8", PQdb(pg),
                           encoding ? encoding : "(unknown)");
    return true;
}

/* ---- one attempt ---- */

/* Waits for the socket. False: not before `until_us`. */
static bool wait_socket(PGconn *pg, short events, int64_t until_us)
{
    struct pollfd p = { .fd = PQsocket(pg), .events = events };
    int64_t left = until_us - loop_clock_us();
    return left > 0 && poll(&p, 1, (int)(left / 1000) + 1) > 0;
}

static bool refuse(struct refusal *why, const PGconn *pg, enum hosts_cause cause, const char *reason)
{
    why->cause = cause;
    hosts_name(pg, why->host);
    hosts_reason(reason, why->reason);
    return false;
}

/* Whether the session takes writes. Does not wait longer than connecting may take. */
static bool takes_writes(PGconn *pg, int64_t until_us, bool *yes)
{
    if (!PQsendQuery(pg, "show transaction_read_only"))
        return false;
    while (PQisBusy(pg))
        if (!wait_socket(pg, POLLIN, until_us) || !PQconsumeInput(pg))
            return false;
    PGresult *r = PQgetResult(pg);
    bool ok = PQresultStatus(r) == PGRES_TUPLES_OK;
    *yes = ok && strcmp(PQgetvalue(r, 0, 0), "off") == 0;
    for (; r; r = PQgetResult(pg))
        PQclear(r);
    return ok;
}

static bool finish_connecting(PGconn *pg, int64_t until_us, struct refusal *why)
{
    PostgresPollingStatusType want =
        PQstatus(pg) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (want != PGRES_POLLING_OK) {
        if (want == PGRES_POLLING_FAILED)
            return refuse(why, pg, hosts_cause_of(PQerrorMessage(pg)), PQerrorMessage(pg));
        if (!wait_socket(pg, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
            return refuse(why, pg, CAUSE_SILENT, "no answer within the time-out for connecting");
        want = PQconnectPoll(pg);
    }
    return true;
}

static PGconn *try_one(struct hosts *hosts, struct hosts_walk *walk, bool read_only_will_do,
                       struct refusal *why)
{
    PGconn *pg = hosts_connect(hosts, walk);
    const int64_t until_us = loop_clock_us() + hosts_limit_us(hosts, walk);
    bool writable = false, ok = pg && finish_connecting(pg, until_us, why);
    if (ok && !takes_writes(pg, until_us, &writable))
        ok = refuse(why, pg, CAUSE_SILENT, "it accepts connections, but does not answer");
    if (ok && !writable && !read_only_will_do)
        ok = refuse(why, pg, CAUSE_READ_ONLY, hosts_cause_text(CAUSE_READ_ONLY));
    if (ok && writable)
        hosts_found(hosts, walk);
    if (ok)
        return pg;
    PQfinish(pg);
    return NULL;
}

/* ---- all servers, until one can be used ---- */

/* Tries each server once. *worst is the refusal that waiting may change, if there is one. */
static PGconn *try_all(struct hosts *hosts, bool read_only_will_do, struct refusal *worst)
{
    struct hosts_walk walk;
    struct refusal why = { .host = "(none)", .reason = "out of memory", .cause = CAUSE_UNREACHABLE };
    worst->cause = CAUSE_NONE;
    hosts_begin(hosts, &walk);
    do {
        PGconn *pg = try_one(hosts, &walk, read_only_will_do, &why);
        if (pg)
            return pg;
        if (worst->cause == CAUSE_NONE || worst->cause == CAUSE_REJECTED || why.cause == CAUSE_STARTING ||
            why.cause == CAUSE_READ_ONLY)
            *worst = why;
    } while (hosts_next(hosts, &walk));
    return NULL;
}

/* Sleeps before the next round, and logs what it waits for. False: a signal asks the process to end, which
 * as PID 1 stays pending (see main.c). */
static bool wait_round(const struct refusal *why, int64_t *logged_us, enum hosts_cause *logged)
{
    sigset_t set;
    if (sigpending(&set) == 0 && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT)))
        return false;
    if (why->cause != *logged || loop_clock_us() - *logged_us > REMIND_US) {
        log_event(LOG_INFO, "db_waiting", "host=\"%s\" reason=\"%s\"", why->host, why->reason);
        *logged = why->cause;
        *logged_us = loop_clock_us();
    }
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
    return true;
}

static PGconn *find(struct hosts *hosts, int64_t wait_ms, bool read_only_will_do)
{
    struct refusal why;
    const int64_t begin_us = loop_clock_us();
    int64_t logged_us = 0;
    enum hosts_cause logged = CAUSE_NONE;
    for (;;) {
        PGconn *pg = try_all(hosts, false, &why);
        if (!pg && why.cause == CAUSE_READ_ONLY && read_only_will_do)
            pg = try_all(hosts, true, &why);
        if (pg)
            return pg;
        /* The wait for a server that is starting is part of every command. */
        int64_t patience_ms = why.cause == CAUSE_REJECTED                                 ? 0
                              : why.cause == CAUSE_STARTING && wait_ms < STARTING_WAIT_MS ? STARTING_WAIT_MS
                                                                                          : wait_ms;
        if (loop_clock_us() - begin_us >= patience_ms * 1000 || !wait_round(&why, &logged_us, &logged))
            break;
    }
    log_failure("cannot %s PostgreSQL at %s: %s", why.cause == CAUSE_READ_ONLY ? "write to" : "connect to",
                why.host, why.reason);
    return NULL;
}

static PGconn *connect_to(const char *database_url, int64_t wait_ms, bool read_only_will_do)
{
    struct hosts *hosts = hosts_read(database_url);
    PGconn *pg = hosts ? find(hosts, wait_ms, read_only_will_do) : NULL;
    if (!pg)
        return NULL;
    if (is_usable(pg)) {
        PQsetErrorVerbosity(pg, PQERRORS_DEFAULT);
        PQsetNoticeProcessor(pg, notice, NULL);
        return pg;
    }
    PQfinish(pg);
    return NULL;
}

PGconn *admin_connect(const char *database_url)
{
    return connect_to(database_url, 0, true);
}

PGconn *admin_connect_within(const char *database_url, int64_t wait_ms)
{
    return connect_to(database_url, wait_ms, false);
}

/* ---- statements ---- */

const char *admin_reason(PGconn *pg, const PGresult *result)
{
    const char *why = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    return why ? why : PQerrorMessage(pg);
}

bool admin_failed(PGconn *pg, const PGresult *result, const char *what)
{
    return log_failure("%s: %s", what, admin_reason(pg, result));
}

bool admin_has_sqlstate(const PGresult *result, const char *sqlstate)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state && strcmp(state, sqlstate) == 0;
}

PGresult *admin_query(PGconn *pg, const char *what, const char *sql, int count, const char *const *values)
{
    PGresult *r = PQexecParams(pg, sql, count, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return r;
    admin_failed(pg, r, what);
    PQclear(r);
    return NULL;
}

bool admin_run(PGconn *pg, const char *what, const char *sql)
{
    PGresult *r = admin_query(pg, what, sql, 0, NULL);
    PQclear(r);
    return r != NULL;
}

/* Connecting: one attempt at one server, and the settings of the new session. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/config.h"
#include "server/log.h"

struct setting {
    const char *name, *value;
};

/* Sent in a statement, because PgBouncer rejects the start-up parameter `options`. */
static const struct setting settings[] = {
    { "search_path", "daybook,public" },
    { "TimeZone", "UTC" },
    { "DateStyle", "ISO" },
    { "IntervalStyle", "iso_8601" },
    { "synchronous_commit", "on" },
    { "extra_float_digits", "1" },
    { "default_transaction_isolation", "read committed" },
    { "jit", "off" },
};

/* Fast statements are planned once. The planner must use their indexes and index order: a plan that suits an
 * empty table would get slow as the table grows. */
static const struct setting fast_settings[] = {
    { "plan_cache_mode", "force_generic_plan" },
    { "enable_seqscan", "off" },
    { "enable_sort", "off" },
    { "lock_timeout", "250ms" }, /* only while preparing: see prepare_all */
};

/* Slow statements are planned for their values, without parallel workers, and as if the data were in memory,
 * which it mostly is. A scan of a vector index continues for as long as the statement reads; the statement
 * limits it. */
static const struct setting slow_settings[] = {
    { "random_page_cost", "1.1" },
    { "max_parallel_workers_per_gather", "0" },
    { "hnsw.iterative_scan", "relaxed_order" },
    { "hnsw.ef_search", "400" },
    { "hnsw.max_scan_tuples", "1000000" },
    { "hnsw.scan_mem_multiplier", "16" },
};

/* A server notices within a second that a connection was closed, also while its statement waits for a lock.
 * Windows cannot do this, and rejects the setting. */
static const char notice_loss[] = ",case when version() !~* 'windows|mingw|visual|msvc' "
                                  "then set_config('client_connection_check_interval','1000',false) end";

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* libpq may close its socket at any time, and opens another one for each way to connect that it tries. Watch
 * a duplicate instead: nobody else can reuse its number. */
void conn_unwatch(struct conn *c)
{
    if (c->watch.fd < 0)
        return;
    loop_watch(c->db->loop, &c->watch, 0);
    close(c->watch.fd);
    c->watch.fd = -1;
}

bool conn_watch(struct conn *c, uint32_t events)
{
    conn_unwatch(c);
    c->watch.fd = fcntl(PQsocket(c->pg), F_DUPFD_CLOEXEC, 0);
    if (c->watch.fd < 0)
        return false;
    loop_watch(c->db->loop, &c->watch, events);
    return true;
}

/* While nothing is pending, libpq reports also the error that ends the session as a notice. */
static void notice(void *arg, const char *text)
{
    char line[HOSTS_REASON_SIZE];
    conn_farewell(arg, text);
    log_event(LOG_DEBUG, "db_notice", "reason=\"%s\"", hosts_reason(text, line));
}

void conn_connect(struct conn *c)
{
    struct loop *l = c->db->loop;
    c->rotating = false;
    c->farewell[0] = 0;
    c->pg = hosts_connect(c->db->hosts, &c->walk);
    conn_set_state(c, CONN_CONNECTING);
    loop_timer(l, &c->timer, hosts_limit_us(c->db->hosts, &c->walk));
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD) {
        conn_broken(c);
        return;
    }
    PQsetNoticeProcessor(c->pg, notice, c);
    if (!conn_watch(c, EPOLLOUT))
        conn_lost(c, CAUSE_UNREACHABLE, strerror(errno));
}

/* ---- the settings ---- */

static void put_settings(struct buf *out, const struct setting *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_fmt(out, ",set_config('%s','%s',false)", list[i].name, list[i].value);
}

/* Sends the settings, and asks whether the server takes writes. A server that is lost behind a proxy, or
 * freezes now, does not answer: then this is not a connection yet. */
static bool send_settings(struct conn *c)
{
    struct arena arena = { 0 };
    struct buf sql = { .arena = &arena };
    const int64_t timeout_ms = c->db->loop->config->request_timeout_ms;
    buf_text(&sql, "select current_setting('transaction_read_only')");
    put_settings(&sql, settings, COUNT(settings));
    if (c->lane == LANE_SLOW)
        put_settings(&sql, slow_settings, COUNT(slow_settings));
    else
        put_settings(&sql, fast_settings, COUNT(fast_settings));
    buf_fmt(&sql, ",set_config('statement_timeout','%lld',false)", (long long)timeout_ms);
    buf_text(&sql, notice_loss);
    buf_fmt(&sql, ",set_config('idle_in_transaction_session_timeout','%lld',false)",
            (long long)timeout_ms + 10000);
    bool sent = PQsendQuery(c->pg, buf_string(&sql));
    arena_release(&arena);
    return sent;
}

static void configure(struct conn *c)
{
    conn_set_state(c, CONN_CONFIGURING);
    if (!send_settings(c))
        conn_broken(c);
}

static void all_prepared(struct op *op, PGresult *result, enum err err)
{
    struct conn *c = op->user;
    c->preparing = false;
    if (err == OK)
        PQclear(result);
}

/* To prepare a statement locks its tables. One that is locked must not hold up the statements of others, so
 * after a short time-out what is left is prepared when it is first needed. */
static bool prepare_all(struct conn *c)
{
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        if (st->lane != c->lane)
            continue;
        if (!conn_prepare(c, NULL, st, false) || (st->together && !conn_prepare(c, NULL, st, true)))
            return false;
    }
    c->unsynced = true;
    c->preparing = true;
    return conn_send_plain(c, "RESET lock_timeout", all_prepared);
}

static void become_ready(struct conn *c)
{
    if (PQsetnonblocking(c->pg, 1) != 0 || !PQenterPipelineMode(c->pg)) {
        conn_broken(c);
        return;
    }
    loop_timer_off(c->db->loop, &c->timer);
    conn_set_state(c, CONN_READY);
    conn_log_connected(c);
    if (!c->read_only)
        hosts_found(c->db->hosts, &c->walk);
    c->db->reconnects += c->failures > 0;
    c->failures = c->rounds = 0;
    c->cause = CAUSE_NONE;
    c->poisoned = false;
    /* The slow lane sends its statements unprepared. */
    if (c->lane != LANE_SLOW && !prepare_all(c)) {
        conn_broken(c);
        return;
    }
    conn_flush(c);
    lanes_connected(c);
}

/* Reads are served by a read-only server if a whole round has found no other. */
static bool is_suitable(const struct conn *c)
{
    return !c->read_only || (c->lane == LANE_READ && c->rounds > 0);
}

static void receive_settings(struct conn *c)
{
    if (!PQconsumeInput(c->pg)) {
        conn_broken(c);
        return;
    }
    while (!PQisBusy(c->pg)) {
        PGresult *r = PQgetResult(c->pg);
        if (!r && is_suitable(c)) {
            become_ready(c);
            return;
        }
        if (!r) {
            conn_lost(c, CAUSE_READ_ONLY, hosts_cause_text(CAUSE_READ_ONLY));
            return;
        }
        bool good = PQresultStatus(r) == PGRES_TUPLES_OK;
        c->read_only = good && strcmp(PQgetvalue(r, 0, 0), "on") == 0;
        PQclear(r);
        if (!good) {
            conn_broken(c);
            return;
        }
    }
}

/* ---- */

void conn_continue(struct conn *c)
{
    if (c->state == CONN_CONFIGURING) {
        receive_settings(c);
        return;
    }
    PostgresPollingStatusType want = PQconnectPoll(c->pg);
    if (want == PGRES_POLLING_FAILED)
        conn_broken(c);
    else if (!conn_watch(c, want == PGRES_POLLING_WRITING ? EPOLLOUT : EPOLLIN))
        conn_lost(c, CAUSE_UNREACHABLE, strerror(errno));
    else if (want == PGRES_POLLING_OK)
        configure(c);
}

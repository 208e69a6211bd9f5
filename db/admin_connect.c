/* The blocking connection behind db/admin, and its error messages. */
#include "db/admin_internal.h"

#include <string.h>
#include <time.h>

#include "server/log.h"

enum { MIN_SERVER_VERSION = 150000, STARTING_TRIES = 300, STARTING_STEP_MS = 200 };

static void notice(void *unused, const char *text)
{
    (void)unused;
    log_event(LOG_DEBUG, "db_notice", "reason=\"%.*s\"", (int)strcspn(text, "\n"), text);
}

/* The message of libpq quotes the URL, which may contain a password. So we print our own. */
static bool is_readable(const char *database_url)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(database_url, &why);
    PQconninfoFree(options);
    PQfreemem(why);
    return options || log_failure("invalid database URL: expected "
                                  "postgresql://user:password@host:5432/database");
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

PGconn *admin_connect(const char *database_url)
{
    /* The URL (dbname) overrides the parameters before it, but not those after it. */
    const char *const names[] = { "connect_timeout", "fallback_application_name", "dbname", "client_encoding",
                                  NULL };
    const char *const values[] = { "10", "daybookd", database_url, "UTF8", NULL };
    if (!is_readable(database_url))
        return NULL;
    PGconn *pg = PQconnectdbParams(names, values, 1);
    for (int i = 0; PQstatus(pg) != CONNECTION_OK && i < STARTING_TRIES; i++) {
        if (PQpingParams(names, values, 1) != PQPING_REJECT)
            break;
        if (i == 0)
            log_event(LOG_INFO, "db_starting", "reason=\"waiting for PostgreSQL to start\"");
        nanosleep(&(struct timespec){ .tv_nsec = STARTING_STEP_MS * 1000000L }, NULL);
        PQfinish(pg);
        pg = PQconnectdbParams(names, values, 1);
    }
    if (PQstatus(pg) != CONNECTION_OK)
        log_failure("cannot connect to PostgreSQL: %s", PQerrorMessage(pg));
    else if (is_usable(pg)) {
        PQsetNoticeProcessor(pg, notice, NULL);
        return pg;
    }
    PQfinish(pg);
    return NULL;
}

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

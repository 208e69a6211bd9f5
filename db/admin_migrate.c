/* Migrations: checks which are applied, and applies the missing ones. */
#include "db/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/sha256.h"
#include "db/admin_internal.h"
#include "db/migrations.h"
#include "server/log.h"

/* The advisory lock that serializes services starting at the same time. */
#define LOCK_NUMBER "28266625474293611"

enum {
    NAME_SIZE = 128,
    PATIENCE_MS = 10 * 60 * 1000, /* how long a migration is tried again while others hold its locks */
    FIRST_PAUSE_MS = 500,
    LONGEST_PAUSE_MS = 10 * 1000,
};

/* The name of the file without its extension: "0007_name". */
static const char *migration_name(int number, const char *name, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%04d_%s", number, name);
    return out;
}

/* ---- applied migrations ---- */

/* Columns of the rows of schema_migrations. */
enum { NUMBER, NAME, CHECKSUM, COMPATIBLE_FROM };

static int number_at(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? 0 : atoi(PQgetvalue(rows, row, column));
}

/* A binary may serve a newer schema if each newer migration says that it can live beside it. */
static bool check_newer(const PGresult *rows)
{
    int last = 0, needed = 0;
    for (int i = 0; i < PQntuples(rows); i++) {
        const int number = number_at(rows, i, NUMBER), from = number_at(rows, i, COMPATIBLE_FROM);
        if (number <= migrations_count)
            continue;
        last = number;
        if (needed < (from ? from : number))
            needed = from ? from : number;
    }
    if (needed > migrations_count)
        return log_failure("the database is at migration %d, this binary knows %d: use a newer daybookd",
                           last, migrations_count);
    if (last)
        log_event(LOG_INFO, "schema_newer",
                  "migration=%d known=%d reason=\"the newer migrations allow this binary\"", last,
                  migrations_count);
    return true;
}

static bool check_row(const PGresult *rows, int i)
{
    const struct migration *m = &migrations[i];
    char name[NAME_SIZE], checksum[SHA256_HEX_SIZE];
    migration_name(number_at(rows, i, NUMBER), PQgetvalue(rows, i, NAME), name);
    if (number_at(rows, i, NUMBER) != m->number)
        return log_failure("the database has migration %s, but not %04d_%s before it", name, m->number,
                           m->name);
    sha256_hex(m->sql, strlen(m->sql), checksum);
    return (strcmp(checksum, PQgetvalue(rows, i, CHECKSUM)) == 0 &&
            strcmp(m->name, PQgetvalue(rows, i, NAME)) == 0) ||
           log_failure("migration %s was applied to this database with another text than this binary has: "
                       "use the daybookd that it belongs to",
                       name);
}

/* Checks that the rows are the first migrations of this binary, and newer ones that allow it. *applied is the
 * number of the former. */
static bool check_applied(const PGresult *rows, int *applied)
{
    if (!check_newer(rows))
        return false;
    *applied = PQntuples(rows) < migrations_count ? PQntuples(rows) : migrations_count;
    for (int i = 0; i < *applied; i++)
        if (!check_row(rows, i))
            return false;
    return true;
}

/* A database without the table has no migration applied. On failure prints one line on stderr. */
static bool read_applied(PGconn *pg, int *applied)
{
    static const char what[] = "cannot read the migrations of this database";
    PGresult *r = admin_query(pg, what,
                              "select exists (select from pg_class where relname = 'schema_migrations' and "
                              "relnamespace = (select oid from pg_namespace where nspname = 'daybook'))",
                              0, NULL);
    bool ok = r != NULL, none = r && PQgetvalue(r, 0, 0)[0] == 'f';
    PQclear(r);
    *applied = 0;
    if (!ok || none)
        return ok;
    /* Not by its name: the column is missing until this release has migrated the database. */
    r = PQexec(pg, "select number, name, checksum, to_jsonb(m) ->> 'compatible_from' "
                   "from daybook.schema_migrations m order by number");
    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        ok = check_applied(r, applied);
    else if (admin_has_sqlstate(r, SQLSTATE_NO_PRIVILEGE))
        ok =
            log_failure("the role %s may not read the schema daybook: use the role that owns it", PQuser(pg));
    else
        ok = admin_failed(pg, r, what);
    PQclear(r);
    return ok;
}

/* ---- applying ---- */

static bool record(PGconn *pg, const struct migration *m, const char *what)
{
    char number[16], compatible[16], checksum[SHA256_HEX_SIZE];
    const char *const values[] = { number, m->name, checksum, compatible };
    snprintf(number, sizeof number, "%d", m->number);
    snprintf(compatible, sizeof compatible, "%d", m->compatible_from);
    sha256_hex(m->sql, strlen(m->sql), checksum);
    PGresult *r =
        admin_query(pg, what,
                    "insert into daybook.schema_migrations (number, name, checksum, compatible_from) "
                    "values ($1, $2, $3, $4)",
                    4, values);
    PQclear(r);
    return r != NULL;
}

static long long wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* The table that records the others. Not recorded itself. compatible_from is null in rows of earlier
 * releases. */
static const struct migration record_table = {
    .name = "schema_migrations",
    .sql =
        "create table if not exists daybook.schema_migrations (number int primary key, name text not null, "
        "checksum text not null, applied_at timestamptz not null default now());"
        "alter table daybook.schema_migrations add column if not exists compatible_from int;"
        "comment on table daybook.schema_migrations is 'The migrations applied to this database';"
        "comment on column daybook.schema_migrations.compatible_from is "
        "'A binary that knows the migrations up to this one can use the schema'",
};

enum attempt { DONE, LOCKED, FAILED };

/* Leaves the transaction open. */
static enum attempt run_text(PGconn *pg, const struct migration *m, const char *what)
{
    PGresult *r = PQexec(pg, m->sql);
    const bool ok = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
    const bool locked =
        admin_has_sqlstate(r, SQLSTATE_LOCK_TIMEOUT) || admin_has_sqlstate(r, SQLSTATE_DEADLOCK);
    if (!ok && !locked)
        admin_failed(pg, r, what);
    PQclear(r);
    if (!ok)
        return locked ? LOCKED : FAILED;
    return !m->number || record(pg, m, what) ? DONE : FAILED;
}

/* While a lock is waited for, everything that needs the table queues behind us. So the wait is short, and
 * between two attempts the others have their turn. */
static enum attempt try_once(PGconn *pg, const struct migration *m, const char *what)
{
    if (!admin_run(pg, what, "begin") ||
        !admin_run(pg, what, "set local lock_timeout = '" ADMIN_LOCK_TIMEOUT "'") ||
        !admin_run(pg, what, "set local search_path = daybook, public"))
        return FAILED;
    enum attempt outcome = run_text(pg, m, what);
    if (outcome == LOCKED)
        return admin_run(pg, what, "rollback") ? LOCKED : FAILED;
    return outcome == DONE && admin_run(pg, what, "commit") ? DONE : FAILED;
}

/* Logs the oldest transaction that has a lock on one of our tables. */
static void log_holder(PGconn *pg, const char *name, int pause)
{
    PGresult *r = PQexec(
        pg, "select c.relname, a.pid, coalesce(nullif(a.application_name, ''), '-'), a.state, "
            "to_char(a.xact_start at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') from pg_locks l "
            "join pg_class c on c.oid = l.relation and c.relnamespace = to_regnamespace('daybook') "
            "join pg_stat_activity a on a.pid = l.pid where l.granted and a.pid <> pg_backend_pid() "
            "and l.database = (select oid from pg_database where datname = current_database()) "
            "order by a.xact_start limit 1");
    if (PQntuples(r))
        log_event(
            LOG_WARN, "migration_waits",
            "migration=%s retry_ms=%d reason=\"a lock on %s: process %s (%s, %s) has a transaction open "
            "since %s\"",
            name, pause, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), PQgetvalue(r, 0, 2), PQgetvalue(r, 0, 3),
            PQgetvalue(r, 0, 4));
    else
        log_event(LOG_WARN, "migration_waits",
                  "migration=%s retry_ms=%d reason=\"a lock that is gone by now\"", name, pause);
    PQclear(r);
}

static bool apply(PGconn *pg, const struct migration *m)
{
    char name[NAME_SIZE], what[NAME_SIZE + 32];
    const long long begin = wall_ms();
    migration_name(m->number, m->name, name);
    snprintf(what, sizeof what, "migration %s failed", name);
    enum attempt outcome;
    for (int pause = FIRST_PAUSE_MS; (outcome = try_once(pg, m, what)) == LOCKED; pause *= 2) {
        if (wall_ms() - begin > PATIENCE_MS)
            return log_failure("%s: others held its locks for %d minutes", what, PATIENCE_MS / 60000);
        if (pause > LONGEST_PAUSE_MS)
            pause = LONGEST_PAUSE_MS;
        log_holder(pg, name, pause);
        pause_ms(pause);
    }
    if (outcome == DONE && m->number)
        log_event(LOG_INFO, "migrated", "migration=%s ms=%lld", name, wall_ms() - begin);
    return outcome == DONE;
}

/* Takes the lock and applies the missing migrations. Closing the connection releases the lock and rolls back
 * an open transaction. */
static bool apply_missing(PGconn *pg)
{
    int applied;
    if (!admin_run(pg, "cannot set the time-outs", "set statement_timeout = 0") ||
        !admin_run(pg, "cannot set the time-outs", "set lock_timeout = 0") ||
        !admin_run(pg, "cannot lock the migrations", "select pg_advisory_lock(" LOCK_NUMBER ")") ||
        !read_applied(pg, &applied))
        return false;
    if (applied < migrations_count &&
        (!admin_verify_untouched(pg, applied) || !admin_schema_prepare(pg) || !apply(pg, &record_table)))
        return false;
    for (int i = applied; i < migrations_count; i++) {
        if (!apply(pg, &migrations[i]))
            return false;
    }
    return true;
}

static bool read_has_keys(PGconn *pg, bool *has_keys)
{
    PGresult *r =
        admin_query(pg, "cannot read the keys", "select exists (select from daybook.api_keys)", 0, NULL);
    *has_keys = r && PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    return r != NULL;
}

static bool migrate(PGconn *pg, bool *has_keys)
{
    int applied = 0;
    return read_applied(pg, &applied) && (applied == migrations_count || apply_missing(pg)) &&
           admin_schema_move_extensions(pg) && admin_verify(pg) && admin_verify_readers(pg) &&
           (!has_keys || read_has_keys(pg, has_keys));
}

bool admin_migrate(const char *database_url, bool *has_keys)
{
    PGconn *pg = admin_connect(database_url);
    bool ok = pg && migrate(pg, has_keys);
    PQfinish(pg);
    return ok;
}

bool admin_migrate_and_describe(const char *database_url, int64_t wait_ms, bool *has_keys,
                                struct arena *arena, const struct described **described)
{
    PGconn *pg = admin_connect_within(database_url, wait_ms);
    bool ok = pg && migrate(pg, has_keys) && admin_describe(pg, arena, described);
    PQfinish(pg);
    return ok;
}

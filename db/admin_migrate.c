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

enum { VECTOR_MAJOR = 0, VECTOR_MINOR = 8, NAME_SIZE = 128 };

/* The name of the file without its extension: "0007_name". */
static const char *migration_name(int number, const char *name, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%04d_%s", number, name);
    return out;
}

/* ---- applied migrations ---- */

/* Checks that the rows (number, name, checksum) are the first migrations of this binary. *applied is their
 * number. */
static bool check_applied(const PGresult *rows, int *applied)
{
    int last = PQntuples(rows) ? atoi(PQgetvalue(rows, PQntuples(rows) - 1, 0)) : 0;
    if (last > migrations_count)
        return log_failure("the database is at migration %d, this binary knows %d: use a newer daybookd",
                           last, migrations_count);
    for (int i = 0; i < PQntuples(rows); i++) {
        const struct migration *m = &migrations[i];
        char name[NAME_SIZE], checksum[SHA256_HEX_SIZE];
        int number = atoi(PQgetvalue(rows, i, 0));
        migration_name(number, PQgetvalue(rows, i, 1), name);
        if (number != m->number)
            return log_failure("the database has migration %s, but not %04d_%s before it", name, m->number,
                               m->name);
        sha256_hex(m->sql, strlen(m->sql), checksum);
        if (strcmp(checksum, PQgetvalue(rows, i, 2)) != 0 || strcmp(m->name, PQgetvalue(rows, i, 1)) != 0)
            return log_failure(
                "migration %s was applied to this database with another text than this binary has: "
                "use the daybookd that it belongs to",
                name);
    }
    *applied = PQntuples(rows);
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
    r = PQexec(pg, "select number, name, checksum from daybook.schema_migrations order by number");
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

/* ---- schema and extensions ---- */

static bool is_old(const char *version)
{
    int major = 0, minor = 0;
    sscanf(version, "%d.%d", &major, &minor);
    return major < VECTOR_MAJOR || (major == VECTOR_MAJOR && minor < VECTOR_MINOR);
}

static bool make_schema(PGconn *pg)
{
    PGresult *r = admin_query(pg, "cannot look for the schema daybook",
                              "select to_regnamespace('daybook') is not null, "
                              "has_database_privilege(current_database(), 'create')",
                              0, NULL);
    if (!r)
        return false;
    bool there = PQgetvalue(r, 0, 0)[0] == 't', may = PQgetvalue(r, 0, 1)[0] == 't';
    PQclear(r);
    if (there)
        return true;
    if (!may)
        return log_failure(
            "the role %s may not create a schema in the database %s: let its owner run GRANT CREATE ON "
            "DATABASE %s TO %s",
            PQuser(pg), PQdb(pg), PQdb(pg), PQuser(pg));
    return admin_run(pg, "cannot create the schema daybook", "create schema daybook");
}

/* The row: installed version, its schema, available version. */
static bool check_extension(PGconn *pg, const char *name, const PGresult *row, bool *there)
{
    bool is_vector = strcmp(name, "vector") == 0;
    const char *installed = PQgetvalue(row, 0, 0), *schema = PQgetvalue(row, 0, 1),
               *available = PQgetvalue(row, 0, 2);
    *there = installed[0] != 0;
    if (*there && strcmp(schema, "public") != 0 && strcmp(schema, "daybook") != 0)
        return log_failure("the extension %s is in the schema %s: run ALTER EXTENSION %s SET SCHEMA public",
                           name, schema, name);
    if (*there && is_vector && is_old(installed))
        return log_failure(
            "the extension vector in the database %s is %s, and pgvector 0.8 or newer is needed: "
            "install it on the server and run ALTER EXTENSION vector UPDATE",
            PQdb(pg), installed);
    if (*there)
        return true;
    if (!available[0] && is_vector)
        return log_failure(
            "this PostgreSQL server has no pgvector: install the package postgresql-%d-pgvector on it "
            "(0.8 or newer)",
            PQserverVersion(pg) / 10000);
    if (!available[0])
        return log_failure("this PostgreSQL server has no %s: install the package postgresql-contrib on it",
                           name);
    if (is_vector && is_old(available))
        return log_failure(
            "this PostgreSQL server has pgvector %s, and 0.8 or newer is needed: install a newer "
            "package postgresql-%d-pgvector on it",
            available, PQserverVersion(pg) / 10000);
    return true;
}

static bool make_extension(PGconn *pg, const char *name)
{
    char sql[64];
    bool there, ok;
    PGresult *r =
        admin_query(pg, "cannot look for extensions",
                    "select extversion, nspname, default_version from (values ($1::text)) as wanted (name) "
                    "left join pg_extension on extname = wanted.name "
                    "left join pg_namespace as n on n.oid = extnamespace "
                    "left join pg_available_extensions as a on a.name = wanted.name",
                    1, &name);
    if (!r)
        return false;
    ok = check_extension(pg, name, r, &there);
    PQclear(r);
    if (!ok || there)
        return ok;
    snprintf(sql, sizeof sql, "create extension if not exists %s", name);
    r = PQexec(pg, sql);
    if (admin_has_sqlstate(r, SQLSTATE_NO_PRIVILEGE))
        ok = log_failure(
            "the role %s may not create the extension %s: let a superuser run CREATE EXTENSION %s in the "
            "database %s once",
            PQuser(pg), name, name, PQdb(pg));
    else if (PQresultStatus(r) != PGRES_COMMAND_OK)
        ok = admin_failed(pg, r, sql);
    PQclear(r);
    return ok;
}

static const char table_sql[] = "create table if not exists daybook.schema_migrations ("
                                "number int primary key, name text not null, checksum text not null, "
                                "applied_at timestamptz not null default now())";

static const char table_comment_sql[] =
    "comment on table daybook.schema_migrations is 'The migrations applied to this database'";

static bool prepare(PGconn *pg)
{
    return admin_run(pg, "cannot begin", "begin") && make_schema(pg) &&
           admin_run(pg, "cannot set the search path", "set local search_path = daybook, public") &&
           make_extension(pg, "vector") && make_extension(pg, "pg_trgm") &&
           admin_run(pg, "cannot create the table schema_migrations", table_sql) &&
           admin_run(pg, "cannot create the table schema_migrations", table_comment_sql) &&
           admin_run(pg, "cannot commit", "commit");
}

/* ---- applying ---- */

static bool record(PGconn *pg, const struct migration *m, const char *what)
{
    char number[16], checksum[SHA256_HEX_SIZE];
    const char *const values[] = { number, m->name, checksum };
    snprintf(number, sizeof number, "%d", m->number);
    sha256_hex(m->sql, strlen(m->sql), checksum);
    PGresult *r = admin_query(
        pg, what, "insert into daybook.schema_migrations (number, name, checksum) values ($1, $2, $3)", 3,
        values);
    PQclear(r);
    return r != NULL;
}

static long long wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool apply(PGconn *pg, const struct migration *m)
{
    char name[NAME_SIZE], what[NAME_SIZE + 32];
    long long begin = wall_ms();
    migration_name(m->number, m->name, name);
    snprintf(what, sizeof what, "migration %s failed", name);
    if (!admin_run(pg, what, "begin") || !admin_run(pg, what, "set local search_path = daybook, public"))
        return false;
    PGresult *r = PQexec(pg, m->sql);
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
    if (!ok)
        admin_failed(pg, r, what);
    PQclear(r);
    if (!ok || !record(pg, m, what) || !admin_run(pg, what, "commit"))
        return false;
    log_event(LOG_INFO, "migrated", "migration=%s ms=%lld", name, wall_ms() - begin);
    return true;
}

/* Takes the lock and applies the missing migrations. Closing the connection releases the lock and rolls back
 * an open transaction. */
static bool apply_missing(PGconn *pg)
{
    int applied;
    if (!admin_run(pg, "cannot set the time-outs", "set statement_timeout = 0") ||
        !admin_run(pg, "cannot set the time-outs", "set lock_timeout = 0") ||
        !admin_run(pg, "cannot lock the migrations", "select pg_advisory_lock(" LOCK_NUMBER ")") ||
        !prepare(pg) || !read_applied(pg, &applied))
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
           (!has_keys || read_has_keys(pg, has_keys));
}

bool admin_migrate(const char *database_url, bool *has_keys)
{
    PGconn *pg = admin_connect(database_url);
    bool ok = pg && migrate(pg, has_keys);
    PQfinish(pg);
    return ok;
}

bool admin_migrate_and_describe(const char *database_url, bool *has_keys, struct arena *arena,
                                const struct described **described)
{
    PGconn *pg = admin_connect(database_url);
    bool ok = pg && migrate(pg, has_keys) && admin_describe(pg, arena, described);
    PQfinish(pg);
    return ok;
}

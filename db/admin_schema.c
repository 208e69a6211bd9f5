/* What the tables of the schema stand on: the schema itself, and the extensions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/admin.h"
#include "db/admin_internal.h"
#include "server/log.h"

enum { VECTOR_MAJOR = 0, VECTOR_MINOR = 8 };

static bool is_old(const char *version)
{
    int major = 0, minor = 0;
    sscanf(version, "%d.%d", &major, &minor);
    return major < VECTOR_MAJOR || (major == VECTOR_MAJOR && minor < VECTOR_MINOR);
}

/* ---- the schema ---- */

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

/* ---- extensions ---- */

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
    snprintf(sql, sizeof sql, "create extension if not exists %s schema public", name);
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

/* Earlier releases created the extensions in the schema daybook. A dump of that schema leaves them out, so it
 * cannot be restored. The service works with either place. */
static void move_extension(PGconn *pg, const char *name)
{
    char sql[64];
    snprintf(sql, sizeof sql, "alter extension %s set schema public", name);
    PGresult *r = PQexec(pg, sql);
    if (PQresultStatus(r) == PGRES_COMMAND_OK)
        log_event(LOG_INFO, "extension_moved", "extension=%s to=public", name);
    else
        log_event(LOG_WARN, "extension_in_daybook",
                  "extension=%s reason=\"%s: let a superuser run ALTER EXTENSION %s SET SCHEMA public in the "
                  "database %s\"",
                  name, admin_reason(pg, r), name, PQdb(pg));
    PQclear(r);
}

bool admin_schema_move_extensions(PGconn *pg)
{
    PGresult *r = admin_query(pg, "cannot look for extensions",
                              "select extname from pg_extension where extname in ('vector', 'pg_trgm') "
                              "and extnamespace = to_regnamespace('daybook')",
                              0, NULL);
    if (!r)
        return false;
    if (PQntuples(r))
        PQclear(PQexec(pg, "set lock_timeout = '" ADMIN_LOCK_TIMEOUT "'"));
    for (int i = 0; i < PQntuples(r); i++)
        move_extension(pg, PQgetvalue(r, i, 0));
    PQclear(r);
    return true;
}

bool admin_extensions(const char *admin_url, int64_t wait_ms)
{
    PGconn *pg = admin_connect_within(admin_url, wait_ms);
    bool ok = pg && make_extension(pg, "vector") && make_extension(pg, "pg_trgm") &&
              admin_schema_move_extensions(pg);
    PQfinish(pg);
    return ok;
}

bool admin_schema_prepare(PGconn *pg)
{
    return admin_run(pg, "cannot begin", "begin") && make_schema(pg) &&
           admin_run(pg, "cannot set the search path", "set local search_path = daybook, public") &&
           make_extension(pg, "vector") && make_extension(pg, "pg_trgm") &&
           admin_run(pg, "cannot commit", "commit");
}

/* Checks that a database has everything that the migrations created: a restore may have been incomplete. */
#include <string.h>

#include "db/admin_internal.h"
#include "db/migrations.h"
#include "server/log.h"

/* Names only: a column of another type is found when the statements are described. An index that is invalid
 * is not used, so it counts as missing. Functions of an extension are the extension's. */
#define OBJECTS                                                                                              \
    "select 'extension ' || extname from pg_extension where extname in ('vector', 'pg_trgm') union all "     \
    "select 'table ' || relname from ours where relkind = 'r' union all "                                    \
    "select 'column ' || relname || '.' || attname from pg_attribute a join ours on ours.oid = a.attrelid "  \
    "where relkind = 'r' and attnum > 0 and not attisdropped union all "                                     \
    "select 'index ' || relname from pg_index i join ours on ours.oid = i.indexrelid "                       \
    "where i.indisvalid union all "                                                                          \
    "select 'constraint ' || relname || '.' || conname from pg_constraint k "                                \
    "join ours on ours.oid = k.conrelid where contype in ('c', 'f') union all "                              \
    "select distinct 'function ' || proname from pg_proc p where pronamespace = to_regnamespace('daybook') " \
    "and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e') union all "          \
    "select 'policy ' || relname || '.' || polname from pg_policy p join ours on ours.oid = p.polrelid "     \
    "where relrowsecurity"
#define OURS                                                                                    \
    "ours as (select oid, relname, relkind, relrowsecurity from pg_class where relnamespace = " \
    "to_regnamespace('daybook') and relname <> 'schema_migrations')"

/* Tables before their columns: the first missing objects are named. */
const char admin_verify_objects_sql[] =
    "with " OURS " select object from (" OBJECTS ") as o (object) order by array_position(array['extension', "
    "'table', 'column', 'index', 'constraint', 'function', 'policy'], split_part(object, ' ', 1)), "
    "object collate \"C\"";

static const char missing_sql[] =
    "with " OURS ", existing (object) as materialized (" OBJECTS "), missing as ("
    "select e.object, e.at from string_to_table($1, E'\\n') with ordinality as e (object, at) "
    "where e.object <> '' and e.object not in (select object from existing)) "
    "select (select count(*) from missing), "
    "(select string_agg(object, ', ' order by at) from (select * from missing order by at limit 3) m)";

bool admin_verify_untouched(PGconn *pg, int applied)
{
    PGresult *r = applied ? NULL
                          : admin_query(pg, "cannot look for tables",
                                        "select relname from pg_class where relkind = 'r' and relnamespace = "
                                        "to_regnamespace('daybook') and relname <> 'schema_migrations' "
                                        "order by relname limit 1",
                                        0, NULL);
    bool ok = applied || (r && PQntuples(r) == 0);
    if (!ok && r)
        log_failure(
            "the schema daybook has the table %s and no record of migrations: it was restored in part; "
            "restore a complete backup into an empty database",
            PQgetvalue(r, 0, 0));
    PQclear(r);
    return ok;
}

bool admin_verify(PGconn *pg)
{
    const char *const values[] = { migrations_objects };
    PGresult *r = admin_query(pg, "cannot check the schema", missing_sql, 1, values);
    const bool ok = r && PQgetisnull(r, 0, 1);
    if (r && !ok)
        log_failure(
            "the schema daybook lacks %s of the objects that its migrations created, the first are: %s; "
            "restore a complete backup into an empty database, or create them again",
            PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1));
    PQclear(r);
    return ok;
}

/* ---- direct readers ---- */

/* A backup has neither roles, which belong to the server, nor privileges, which name them. The tables of
 * direct readers are those with the policy. */
static const char readers_sql[] =
    "do $$\n"
    "declare t regclass;\n"
    "begin\n"
    "  if not exists (select from pg_roles where rolname = 'daybook_reader') then\n"
    "    create role daybook_reader nologin;\n"
    "  end if;\n"
    "  revoke execute on function daybook.protect_owned(regclass) from public;\n"
    "  grant usage on schema daybook to daybook_reader;\n"
    "  for t in select polrelid from pg_policy p join pg_class c on c.oid = p.polrelid\n"
    "      where polname = 'reader' and relnamespace = 'daybook'::regnamespace loop\n"
    "    execute format('grant select on %s to daybook_reader', t);\n"
    "  end loop;\n"
    "exception when duplicate_object or unique_violation then null;\n"
    "end $$";

static const char readers_complete_sql[] =
    "select exists (select from pg_roles where rolname = 'daybook_reader') and "
    "(select bool_and(has_table_privilege(r.oid, polrelid, 'select') "
    "and has_schema_privilege(r.oid, 'daybook', 'usage')) "
    "from pg_policy p join pg_class c on c.oid = p.polrelid "
    "cross join (select oid from pg_roles where rolname = 'daybook_reader') r "
    "where polname = 'reader' and relnamespace = to_regnamespace('daybook'))";

bool admin_verify_readers(PGconn *pg)
{
    PGresult *r = admin_query(pg, "cannot check the role daybook_reader", readers_complete_sql, 0, NULL);
    const bool ok = r != NULL, complete = r && PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    if (!ok || complete)
        return ok;
    r = PQexec(pg, readers_sql);
    if (PQresultStatus(r) == PGRES_COMMAND_OK)
        log_event(LOG_INFO, "readers_restored",
                  "reason=\"the role daybook_reader or its privileges were missing\"");
    else
        log_event(LOG_INFO, "readers_incomplete",
                  "reason=\"%s: direct readers may see nothing until a superuser runs daybookd migrate\"",
                  admin_reason(pg, r));
    PQclear(r);
    return true;
}

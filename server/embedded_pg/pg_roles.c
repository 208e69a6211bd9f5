/* The roles of the private cluster: an administrator, who makes what only a superuser can make, and the role
 * of the service, which owns its own schema and nothing else. The administrator makes the extensions later
 * (admin_extensions): what is made without a server counts as a part of PostgreSQL, and no dump has it. */
#include "server/embedded_pg/pg.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/log.h"

/* In the cluster, so that a restored copy of an older one is set up again. */
static const char marker[] = "daybook_roles";

/* Every statement can be repeated. The clusters of the first versions had one superuser, called daybook. It
 * is role 10, which PostgreSQL lets nobody demote or drop: it becomes the administrator, and what it made in
 * the schema goes to the new role. The session of a renamed role must be another one's. */
static const char rename_sql[] =
    "do $$ begin\n"
    "  if (select rolname = '" PG_ROLE "' from pg_roles where oid = 10) then\n"
    "    create role daybook_rename superuser;\n"
    "    set session authorization daybook_rename;\n"
    "    alter role " PG_ROLE " rename to " PG_ADMIN ";\n"
    "    set session authorization " PG_ADMIN ";\n" /* without a server, nothing remembers who it was */
    "    drop role daybook_rename;\n"
    "  end if;\n"
    "end $$;\n\n";

static const char roles_sql[] =
    "do $$ begin\n"
    "  if not exists (select from pg_roles where rolname = '" PG_ROLE "') then\n"
    "    create role " PG_ROLE ";\n"
    "  end if;\n"
    "  if not exists (select from pg_roles where rolname = '" PG_READERS "') then\n"
    "    create role " PG_READERS ";\n"
    "  end if;\n"
    "end $$;\n\n"
    "alter role " PG_ROLE " login nosuperuser nocreatedb nocreaterole noreplication nobypassrls;\n\n";

static const char database_sql[] = "create database " PG_DATABASE " owner " PG_ROLE ";\n\n";

static const char schema_sql[] = "alter database " PG_DATABASE " owner to " PG_ROLE ";\n\n"
                                 "create schema if not exists daybook;\n\n"
                                 "alter schema daybook owner to " PG_ROLE ";\n\n";

/* A sequence of a column has the owner of its table. */
static const char owners_sql[] =
    "do $$ declare\n"
    "  statement text;\n"
    "begin\n"
    "  for statement in\n"
    "    select format('alter %s %s owner to " PG_ROLE "', kind, name) from (\n"
    "      select 'pg_class'::regclass as class, oid, oid::regclass::text as name,\n"
    "             case relkind when 'S' then 'sequence' when 'v' then 'view'\n"
    "                          when 'm' then 'materialized view' else 'table' end as kind\n"
    "      from pg_class where relnamespace = 'daybook'::regnamespace and relkind in ('r', 'p', 'v', 'm', "
    "'S')\n"
    "      union all\n"
    "      select 'pg_proc'::regclass, oid, oid::regprocedure::text, 'routine'\n"
    "      from pg_proc where pronamespace = 'daybook'::regnamespace\n"
    "      union all\n"
    "      select 'pg_type'::regclass, t.oid, t.oid::regtype::text, 'type'\n"
    "      from pg_type as t left join pg_class as c on c.oid = typrelid\n"
    "      where typnamespace = 'daybook'::regnamespace and (typtype in ('d', 'e', 'r') or relkind = 'c')\n"
    "    ) as object (class, id, name, kind)\n"
    "    where not exists (select from pg_depend where classid = class and objid = id\n"
    "                        and (deptype = 'e' or (kind = 'sequence' and deptype in ('a', 'i'))))\n"
    "  loop\n"
    "    execute statement;\n"
    "  end loop;\n"
    "end $$;\n\n";

struct step {
    const char *database;
    const char *sql[5]; /* up to NULL */
};

/* Runs the statements without a server, in single-user mode. */
static bool run_step(const struct pg_folder *f, const char *postgres, const char *inside,
                     const struct step *s, int out)
{
    const char *const argv[] = { postgres,
                                 "--single",
                                 "-j",
                                 "-D",
                                 inside,
                                 "-c",
                                 "exit_on_error=on",
                                 "-c",
                                 "log_min_error_statement=panic",
                                 "-c",
                                 "jit=off",
                                 s->database,
                                 NULL };
    int in = memfd_create("statements", MFD_CLOEXEC);
    bool ok = in >= 0;
    for (int i = 0; ok && s->sql[i]; i++)
        ok = write(in, s->sql[i], strlen(s->sql[i])) == (ssize_t)strlen(s->sql[i]);
    ok = ok && lseek(in, 0, SEEK_SET) == 0 && pg_cluster_run(f, argv, in, out);
    if (in >= 0)
        close(in);
    return ok;
}

bool pg_roles_make(const struct pg_folder *f, const struct pg_install *install, const char *name, bool is_new,
                   int out)
{
    static const struct step steps[] = {
        { "template1", { roles_sql, database_sql } },
        { PG_DATABASE, { rename_sql, roles_sql, schema_sql, owners_sql } },
    };
    char postgres[PG_PATH], inside[PG_PATH], folder[PG_PATH], path[PG_PATH];
    pg_folder_path(postgres, install->bin, "postgres");
    pg_folder_path(inside, f->inside, name);
    pg_folder_path(folder, f->data, name);
    pg_folder_path(path, folder, marker);
    return (!is_new || run_step(f, postgres, inside, &steps[0], out)) &&
           run_step(f, postgres, inside, &steps[1], out) &&
           pg_folder_write(f, path,
                           "The roles of this cluster are set up: see server/embedded_pg/pg_roles.c.\n");
}

bool pg_roles_update(const struct pg_folder *f, const struct pg_install *install)
{
    char path[PG_PATH];
    pg_folder_path(path, f->cluster, marker);
    if (access(path, F_OK) == 0)
        return true;
    int out = memfd_create("roles", MFD_CLOEXEC);
    bool ok =
        out >= 0 && pg_stop_leftovers(f->cluster, NULL) && pg_roles_make(f, install, "cluster", false, out);
    if (ok)
        log_event(LOG_INFO, "postgres_roles", "data=\"%s\" admin=" PG_ADMIN " service=" PG_ROLE, f->data);
    else {
        pg_log_print_end(out, 0);
        log_failure("the roles of the PostgreSQL cluster in %s could not be set up: see the messages above",
                    f->data);
    }
    if (out >= 0)
        close(out);
    return ok;
}

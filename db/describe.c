/* Asks PostgreSQL for the result columns of every statement. */
#include "db/describe.h"

#include "db/admin_internal.h"
#include "db/statement.h"
#include "server/log.h"

/* Pipelined: one round trip for all statements. */
static bool send_all(PGconn *pg)
{
    bool sent = PQenterPipelineMode(pg);
    for (int i = 0; sent && i < statements_count; i++)
        sent = PQsendPrepare(pg, "", statements[i]->sql, 0, NULL) && PQsendDescribePrepared(pg, "");
    return sent && PQpipelineSync(pg);
}

static void take_names(const PGresult *r, struct arena *arena, struct described *d)
{
    d->count = PQnfields(r);
    d->names = arena_alloc(arena, (size_t)(d->count + 1) * sizeof *d->names);
    for (int i = 0; i < d->count; i++)
        d->names[i] = arena_text(arena, PQfname(r, i));
}

/* Reads the result of one Prepare or Describe, and the NULL that ends it. */
static bool take_one(PGconn *pg, const struct statement *st, struct arena *arena, struct described *d)
{
    PGresult *r = PQgetResult(pg);
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;
    if (!ok)
        log_failure("PostgreSQL rejects the statement %s: %s", st->name,
                    r ? PQresultErrorMessage(r) : PQerrorMessage(pg));
    else if (d)
        take_names(r, arena, d);
    PQclear(r);
    PQclear(PQgetResult(pg));
    return ok;
}

/* Functions that list all columns of a table by position. PostgreSQL compares them with the table only when
 * they run, which would otherwise be the first tick. */
static bool check_row_functions(PGconn *pg)
{
    return admin_run(pg, "new_snapshot does not fit decision_snapshots", "select new_snapshot('', null)") &&
           admin_run(pg, "new_trade does not fit trade_history", "select new_trade('', null, '', '')");
}

bool admin_describe(PGconn *pg, struct arena *arena, const struct described **described)
{
    struct described *all = arena_zero(arena, (size_t)(statements_count + 1) * sizeof *all);
    bool ok = admin_run(pg, "cannot set the schema", "set search_path = daybook, public") &&
              check_row_functions(pg) &&
              (send_all(pg) || log_failure("cannot check the statements: %s", PQerrorMessage(pg)));
    for (int i = 0; ok && i < statements_count; i++)
        ok = take_one(pg, statements[i], arena, NULL) && take_one(pg, statements[i], arena, &all[i]);
    *described = all;
    return ok;
}

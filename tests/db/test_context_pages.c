/* The reads before each decision touch few pages, however large the ledger is and however its rows are spread
 * over deployments. */
#include <check.h>

#include "core/base/buf.h"
#include "db/statement.h"
#include "tests/db/database.h"

#define BIG   "0190aaaa-0000-7000-8000-000000000001"
#define SMALL "0190aaaa-0000-7000-8000-000000000002"

enum { FEW_PAGES = 60, TOGETHER = 4 };

static PGconn *pg;

static void run(const char *sql)
{
    PQclear(database_query(pg, sql));
}

/* Inserts `count` ticks, a minute apart, up to `last`. Each was rejected, and each closed a trade. */
static void fill(const char *deployment, int count, const char *last)
{
    struct arena arena = { 0 };
    run(arena_fmt(
        &arena,
        "insert into deployments values ('local', '%s', 's', '1', 'sim', null, 'off', 10, '2020-01-01');"
        "insert into agent_state (owner, deployment_id, last_tick_at) values ('local', '%s', '%s')",
        deployment, deployment, last));
    run(arena_fmt(
        &arena,
        "insert into decision_snapshots (owner, id, deployment_id, tick_at, equity_usd, engine_kind, input, "
        "ops, "
        "open, reflection_due, day_start_equity_usd, executed_today, realized_today_usd, losing_closes) "
        "select 'local', overlay('%s'::text placing lpad(n::text, 8, '0') from 1)::uuid, '%s', timestamptz "
        "'%s' - (%d - n) * interval '1 minute', 1, 'rejected', '{}', '[]', '[]', false, 1, 0, 0, 0 "
        "from generate_series(1, %d) n",
        deployment, deployment, last, count, count));
    run(arena_fmt(
        &arena,
        "insert into trade_history (owner, id, deployment_id, skill_id, version, symbol, side, status, "
        "entry_tick_at, entry_price, entry_size_usd, exit_tick_at, exit_price, exit_reason, holding_minutes, "
        "realized_pnl_usd, size_base, average_entry_price, mark_price, last_tick_at) "
        "select owner, id, deployment_id, 's', '1', 'X', 'long', 'closed', tick_at - interval '9 minutes', "
        "1, 1, "
        "tick_at, 1, 'x', 9, 0, 0, 1, 1, tick_at from decision_snapshots where deployment_id = '%s'",
        deployment));
    arena_release(&arena);
}

/* Inserts `count` notes, a day apart, each superseded by the next, of a deployment or (NULL) of the skill. */
static void fill_notes(const char *deployment, int count, const char *last)
{
    struct arena arena = { 0 };
    run(arena_fmt(
        &arena,
        "insert into reflection_notes (owner, id, skill_id, version, deployment_id, status, generated_at, "
        "superseded_at, lessons_text, content_hash, model_used, created_at) "
        "select 'local', gen_random_uuid(), 's', '1', %s%s%s, case n when %d then 'active' else 'superseded' "
        "end, timestamptz '%s' - (%d - n) * interval '1 day', case when n < %d then timestamptz '%s' - (%d - "
        "n - 1) * interval '1 day' end, repeat('x', 2000), '0123456789abcdef', 'builtin', '2020-01-01' "
        "from generate_series(1, %d) n",
        deployment ? "'" : "", deployment ? deployment : "null", deployment ? "'" : "", count, last, count,
        count, last, count, count));
    arena_release(&arena);
}

/* The settings of a fast lane; see conn_connect. */
static void setup(void)
{
    pg = database_migrated("pages");
    run("set search_path = daybook, public; set jit = off; set plan_cache_mode = force_generic_plan;"
        "set enable_seqscan = off; set enable_sort = off");
    run("insert into skills (owner, skill_id) values ('local', 's');"
        "insert into skill_versions (owner, skill_id, version, strategy) values ('local', 's', '1', '')");
    fill(BIG, 20000, "2026-06-01");
    fill_notes(BIG, 2000, "2026-06-01");
    run("vacuum analyze decision_snapshots");
    run("vacuum analyze trade_history");
    run("vacuum analyze reflection_notes");
    fill(SMALL, 3, "2021-06-01"); /* not covered by statistics */
    fill_notes(NULL, 500, "2021-05-30");
}

static void teardown(void)
{
    database_finish(pg);
}

static const char *literal(struct arena *arena, const char *value, bool together)
{
    if (!together)
        return value ? arena_fmt(arena, "'%s'", value) : "null";
    struct buf out = { .arena = arena };
    for (int i = 0; i < TOGETHER; i++)
        buf_fmt(&out, "%s%s", i ? "," : "array[", literal(arena, value, false));
    buf_text(&out, "]::text[]");
    return buf_string(&out);
}

static const char *value_of(const char *param, const char *id, const char *as_of)
{
    return strcmp(param, "owner") == 0            ? "local"
           : strcmp(param, "id") == 0             ? id
           : strcmp(param, "now") == 0            ? "2026-06-01"
           : strcmp(param, "k") == 0              ? "30"
           : strcmp(param, "window_us") == 0      ? "3600000000"
           : strcmp(param, "max_rejections") == 0 ? "5000"
                                                  : as_of;
}

/* The number of pages that one request reads. */
static int pages(const struct statement *st, bool together, const char *id, const char *as_of)
{
    struct arena arena = { 0 };
    struct buf sql = { .arena = &arena };
    const char *known =
        st == &DECISION_SNAPSHOT_CONTEXT ? "9999-12-31" : as_of; /* it reads at the instant of its tick */
    PGresult *r = PQprepare(pg, "s", together ? st->together : st->sql, 0, NULL);
    ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(pg));
    PQclear(r);
    buf_text(&sql, "explain (analyze, buffers, format yaml) execute s(");
    for (int i = 0; i < st->param_count; i++)
        buf_fmt(&sql, "%s%s", i ? ", " : "", literal(&arena, value_of(st->params[i], id, known), together));
    buf_text(&sql, ")");
    PQclear(database_query(pg, buf_string(&sql))); /* the first execution reads the catalog too */
    r = database_query(pg, buf_string(&sql));
    const char *plan = PQgetvalue(r, 0, 0);
    const char *hit = strstr(plan, "Shared Hit Blocks: "), *read = strstr(plan, "Shared Read Blocks: ");
    ck_assert_ptr_nonnull(hit);
    ck_assert_ptr_nonnull(strstr(plan, together ? "Actual Rows: 4" : "Actual Rows: 1"));
    int count = atoi(hit + strlen("Shared Hit Blocks: ")) + atoi(read + strlen("Shared Read Blocks: "));
    PQclear(r);
    run("deallocate s");
    arena_release(&arena);
    return together ? count / TOGETHER : count;
}

START_TEST(a_context_reads_few_pages_for_large_and_small_deployments_at_any_instant)
{
    static const char *const big[] = { NULL, "2026-06-01", "2026-05-25T12:00:30Z", "2019-01-01" };
    static const char *const small[] = { NULL, "2026-06-01", "2021-06-01", "2019-01-01" };
    const struct statement *const of_deployment[] = { &RISK_STATE_GET, &CONTEXT_GET, &LESSONS_SEGMENT_GET };
    for (int together = 0; together < 2; together++) {
        for (size_t s = 0; s < 3; s++)
            for (size_t i = 0; i < 4; i++) {
                ck_assert_int_lt(pages(of_deployment[s], together, BIG, big[i]), FEW_PAGES);
                ck_assert_int_lt(pages(of_deployment[s], together, SMALL, small[i]), FEW_PAGES);
            }
        static const char *const snapshots[] = { "00000001-0000-7000-8000-000000000001",
                                                 "00010000-0000-7000-8000-000000000001",
                                                 "00020000-0000-7000-8000-000000000001",
                                                 "00000003-0000-7000-8000-000000000002" };
        for (size_t i = 0; i < 4; i++)
            ck_assert_int_lt(pages(&DECISION_SNAPSHOT_CONTEXT, together, snapshots[i], NULL), FEW_PAGES);
    }
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &a_context_reads_few_pages_for_large_and_small_deployments_at_any_instant,
    };
    return database_tests("context_pages", tests, sizeof tests / sizeof *tests, setup, teardown);
}

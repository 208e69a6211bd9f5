/* Creating a lesson reads few pages, even with a plan made while the library was empty and had no statistics.
 */
#include <check.h>

#include "core/base/buf.h"
#include "db/statement.h"
#include "tests/db/database.h"

enum { LESSONS = 3000, FEW_PAGES = 3000 }; /* a few for each of the 400 that are compared */

static PGconn *pg;

static void run(const char *sql)
{
    PQclear(database_query(pg, sql));
}

/* The settings of a fast lane; see conn_connect. */
static void setup(void)
{
    pg = database_migrated("lessons");
    run("set search_path = daybook, public; set jit = off; set plan_cache_mode = force_generic_plan;"
        "set enable_seqscan = off; set enable_sort = off; set client_min_messages = error");
    run("alter table lessons set (autovacuum_enabled = off)");
}

static void teardown(void)
{
    database_finish(pg);
}

static const char *value_of(const char *param)
{
    static const char *const values[][2] = {
        { "owner", "local" },       { "new_id", "0190aaaa-0000-7000-8000-000000000001" },
        { "at", "2026-06-01" },     { "tags", "{macro}" },
        { "evidence", "{shown}" },  { "takeaway", "Spreads widen before the close of session 7" },
        { "similar_keys", "{1,2}" }
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i][0], param) == 0)
            return values[i][1];
    return "x";
}

/* The number of pages read to create one more lesson, which is rolled back. */
static int pages(void)
{
    static const char hits[] = "Shared Hit Blocks: ", reads[] = "Shared Read Blocks: ";
    struct arena arena = { 0 };
    struct buf sql = { .arena = &arena };
    buf_text(&sql, "explain (analyze, buffers, format yaml) execute s(");
    for (int i = 0; i < LESSON_CREATE.param_count; i++)
        buf_fmt(&sql, "%s'%s'", i ? ", " : "", value_of(LESSON_CREATE.params[i]));
    buf_text(&sql, ")");
    run("begin");
    PGresult *r = database_query(pg, buf_string(&sql));
    run("rollback");
    const char *plan = PQgetvalue(r, 0, 0), *hit = strstr(plan, hits), *read = strstr(plan, reads);
    ck_assert(hit && read);
    const int count = atoi(hit + strlen(hits)) + atoi(read + strlen(reads));
    PQclear(r);
    arena_release(&arena);
    return count;
}

START_TEST(creating_a_lesson_reads_few_pages_with_a_plan_for_an_empty_library_and_with_a_new_one)
{
    struct arena arena = { 0 };
    PQclear(PQprepare(pg, "s", LESSON_CREATE.sql, 0, NULL));
    ck_assert_int_lt(pages(), FEW_PAGES);
    run(arena_fmt(
        &arena,
        "insert into lessons (owner, id, version, known_from, at, context, outcome, takeaway, tags, "
        "evidence, status, status_at, similar_keys) "
        "select 'local', gen_random_uuid(), 1, '2026-01-01', '2026-01-01', 'x', 'x', "
        "'Spreads widen before the close of session ' || n, '{macro}', '{shown}', 'proposed', "
        "'2026-01-01', array[1, n] from generate_series(2, %d) n",
        LESSONS + 1));
    ck_assert_int_lt(pages(), FEW_PAGES);
    run("discard plans");
    ck_assert_int_lt(pages(), FEW_PAGES);
    run("analyze lessons");
    ck_assert_int_lt(pages(), FEW_PAGES);
    arena_release(&arena);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &creating_a_lesson_reads_few_pages_with_a_plan_for_an_empty_library_and_with_a_new_one,
    };
    return database_tests("lesson_pages", tests, sizeof tests / sizeof *tests, setup, teardown);
}

/* A search of memories reads its candidates and the newest memories, not all of them. */
#include <check.h>

#include "core/base/buf.h"
#include "db/statement.h"
#include "tests/db/database.h"

enum {
    MEMORIES = 6000,
    VECTORS = 100,   /* of the newest memories */
    CANDIDATES = 50, /* :max_candidates */
    SAMPLED = 1000,  /* :max_sampled */
    MOST = 2 * SAMPLED,
};

static PGconn *pg;

static void run(const char *sql)
{
    PQclear(database_query(pg, sql));
}

/* The settings of the slow lane; see conn_connect. */
static void setup(void)
{
    struct arena arena = { 0 };
    pg = database_migrated("memory_rows");
    run("set search_path = daybook, public; set jit = off; set plan_cache_mode = force_custom_plan;"
        "set random_page_cost = 1.1; set max_parallel_workers_per_gather = 0; set client_min_messages = "
        "error");
    run(arena_fmt(&arena,
                  "insert into memories (owner, id, version, known_from, kind, status, at, text_id, text) "
                  "select 'local', i.id, 1, i.at, 'note', 'active', i.at, i.id, 'session ' || n || repeat(' "
                  "of the market', 40) "
                  "from generate_series(1, %d) n, lateral (select gen_random_uuid() as id, "
                  "timestamptz '2026-01-01' + n * interval '1 minute' as at where n > 0) i",
                  MEMORIES));
    run(arena_fmt(&arena,
                  "insert into memory_vectors (owner, text_id, memory_id, model, dim, v384) "
                  "select owner, text_id, id, 'bench', 2, ('[1,' || row_number() over () || repeat(',0', "
                  "382) || ']')::halfvec "
                  "from (select * from memories order by at desc limit %d) m",
                  VECTORS));
    run("analyze memories; analyze memory_vectors");
    arena_release(&arena);
}

static void teardown(void)
{
    database_finish(pg);
}

static const char *value_of(struct arena *arena, const char *param)
{
    const char *const values[][2] = {
        { "owner", "'local'" },
        { "as_of", "'2027-01-01'" },
        { "query_text", "'session 7'" },
        { "query_vector", "'{1,1}'" },
        { "query_model", "'bench'" },
        { "query_dim", "2" },
        { "width", "384" },
        { "word_query", "'''7'''" },
        { "lexemes", "array['7']::tsquery[]" },
        { "idfs", "'{1}'" },
        { "k", "5" },
        { "max_compared", "1000" },
        { "max_visited", "1000" },
        { "max_pending", "0" },
        { "max_word_matches", "1000" },
        { "max_candidates", arena_fmt(arena, "%d", CANDIDATES) },
        { "max_sampled", arena_fmt(arena, "%d", SAMPLED) },
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i][0], param) == 0)
            return values[i][1];
    return "null";
}

/* The most rows that a node of the plan returns in one loop. */
static int most_rows(const struct statement *st)
{
    static const char rows[] = "Actual Rows: ";
    struct arena arena = { 0 };
    struct buf sql = { .arena = &arena };
    int most = 0;
    PQclear(PQprepare(pg, st->name, st->sql, 0, NULL));
    buf_fmt(&sql, "explain (analyze, format yaml) execute %s(", st->name);
    for (int i = 0; i < st->param_count; i++)
        buf_fmt(&sql, "%s%s", i ? ", " : "", value_of(&arena, st->params[i]));
    buf_text(&sql, ")");
    PGresult *r = database_query(pg, buf_string(&sql));
    for (const char *at = PQgetvalue(r, 0, 0); (at = strstr(at, rows)); at++) {
        const int count = atoi(at + strlen(rows));
        most = count > most ? count : most;
    }
    PQclear(r);
    arena_release(&arena);
    return most;
}

START_TEST(the_words_of_a_query_are_counted_in_the_newest_memories)
{
    ck_assert_int_ge(most_rows(&MEMORY_LEXEMES), SAMPLED);
    ck_assert_int_le(most_rows(&MEMORY_LEXEMES), MOST);
}
END_TEST

START_TEST(a_search_reads_its_candidates)
{
    ck_assert_int_ge(most_rows(&MEMORY_NEAREST_384), CANDIDATES);
    ck_assert_int_le(most_rows(&MEMORY_NEAREST_384), 2 * CANDIDATES + VECTORS);
}
END_TEST

START_TEST(a_search_without_a_query_reads_the_newest_memories)
{
    ck_assert_int_ge(most_rows(&MEMORY_NEWEST), 5);
    ck_assert_int_le(most_rows(&MEMORY_NEWEST), SAMPLED);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &the_words_of_a_query_are_counted_in_the_newest_memories,
        &a_search_reads_its_candidates,
        &a_search_without_a_query_reads_the_newest_memories,
    };
    return database_tests("memory_rows", tests, sizeof tests / sizeof *tests, setup, teardown);
}

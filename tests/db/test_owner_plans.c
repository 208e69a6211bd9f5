/* Every statement stays with one owner: each scan of an owned table is limited by `owner = $1`. The proof is
 * the plan of PostgreSQL, so a condition that the planner derives counts, and one that only looks right does
 * not. A distributed PostgreSQL with owners on different servers needs this to route a statement. */
#include <check.h>
#include <jansson.h>

#include "core/base/buf.h"
#include "db/statement.h"
#include "tests/db/owned_rows.h"

enum { MOST_PARAMS = 100, MOST_BOUND = 64, TEXT_OID = 25 };

static PGconn *pg;
static char tables[MOST_TABLES][64];
static int table_count;

#define EXPIRED "each write deletes a few expired keys, whoever owns them"
#define PENDING \
    "the background job serves all owners: its statements with rows name the owner that these find"
#define HNSW "an hnsw index has no owner: its result is limited to the owner one level up"

/* Scans that need no `owner = $1`, each with the reason. An exception that is no longer needed fails. */
static struct exception {
    const char *statement, *table, *reason;
    bool used;
} exceptions[] = {
    { .statement = "key_refresh", .table = "api_keys", .reason = "finds out who the owner is" },
    { .statement = "key_find", .table = "api_keys", .reason = "finds out who the owner is" },
    { .statement = "key_find_together", .table = "api_keys", .reason = "finds out who the owner is" },
    { .statement = "backfill_owner", .table = "episodic_memory", .reason = PENDING },
    { .statement = "backfill_owner", .table = "situations", .reason = PENDING },
    { .statement = "backfill_count", .table = "episodic_memory", .reason = PENDING },
    { .statement = "backfill_count", .table = "situations", .reason = PENDING },
    { .statement = "backfill_owner", .table = "memories", .reason = PENDING },
    { .statement = "backfill_count", .table = "memories", .reason = PENDING },
    { .statement = "backfill_owner", .table = "lessons", .reason = PENDING },
    { .statement = "backfill_count", .table = "lessons", .reason = PENDING },
    { .statement = "unsealed_owner", .table = "memory_events", .reason = PENDING },
    { .statement = "idempotency_store", .table = "idempotency_keys", .reason = EXPIRED },
    { .statement = "idempotency_claim", .table = "idempotency_keys", .reason = EXPIRED },
    { .statement = "lesson_create",
      .table = "lessons",
      .reason = "similar_keys include the owner; see lessons.sql" },
    { .statement = "episodic_nearest_384", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "episodic_nearest_768", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "episodic_nearest_1024", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "episodic_nearest_1536", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "episodic_nearest_3072", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "episodic_nearest_4000", .table = "episodic_vectors", .reason = HNSW },
    { .statement = "memory_nearest_384", .table = "memory_vectors", .reason = HNSW },
    { .statement = "memory_nearest_768", .table = "memory_vectors", .reason = HNSW },
    { .statement = "memory_nearest_1024", .table = "memory_vectors", .reason = HNSW },
    { .statement = "memory_nearest_1536", .table = "memory_vectors", .reason = HNSW },
    { .statement = "memory_nearest_3072", .table = "memory_vectors", .reason = HNSW },
    { .statement = "memory_nearest_4000", .table = "memory_vectors", .reason = HNSW },
};

enum { EXCEPTIONS = sizeof exceptions / sizeof *exceptions };

/* A form of a statement: the text that is sent, and how its plan prints the owner. */
struct form {
    const char *name, *sql, *owner;
    bool together;
    int params;
    void (*found)(const struct form *f, const char *table);
    const char *bound[MOST_BOUND];
    int bound_count;
};

/* ---- conditions ---- */

/* Cuts off parentheses that enclose the whole text. */
static void strip(const char **text, size_t *len)
{
    while (*len >= 2 && (*text)[0] == '(' && (*text)[*len - 1] == ')') {
        int depth = 0;
        for (size_t i = 0; i + 1 < *len; i++) {
            depth += (*text)[i] == '(' ? 1 : (*text)[i] == ')' ? -1 : 0;
            if (depth == 0)
                return;
        }
        (*text)++;
        *len -= 2;
    }
}

static bool is_bound(const struct form *f, const char *text, size_t len)
{
    for (int i = 0; i < f->bound_count; i++)
        if (len == strlen(f->bound[i]) + strlen(".owner") &&
            memcmp(text, f->bound[i], strlen(f->bound[i])) == 0 &&
            memcmp(text + strlen(f->bound[i]), ".owner", strlen(".owner")) == 0)
            return true;
    return false;
}

static bool is_number(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && isdigit((unsigned char)text[i]))
        i++;
    return len && i == len;
}

/* Whether the text is a value that owners may be compared with. The plan of the form for several requests may
 * print q.p1 in two more ways: in a subquery as $ and a number (its own parameters are arrays, which cannot
 * be compared with an owner), and as the owner of another scan that is limited to it. */
static bool is_owner_value(const struct form *f, const char *text, size_t len)
{
    if (len > 6 && memcmp(text + len - 6, "::text", 6) == 0) /* where the planner derived the condition */
        len -= 6;
    strip(&text, &len);
    if (len == strlen(f->owner) && memcmp(text, f->owner, len) == 0)
        return true;
    return f->together && ((text[0] == '$' && is_number(text + 1, len - 1)) || is_bound(f, text, len));
}

/* Whether the text is `owner = value`, or `x.owner = value`. */
static bool names_owner(const struct form *f, const char *text, size_t len)
{
    static const char compared[] = "owner = ";
    size_t column = 0;
    strip(&text, &len);
    while (column < len && (isalnum((unsigned char)text[column]) || text[column] == '_'))
        column++;
    column = column < len && text[column] == '.' ? column + 1 : 0;
    text += column;
    len -= column;
    return len > strlen(compared) && memcmp(text, compared, strlen(compared)) == 0 &&
           is_owner_value(f, text + strlen(compared), len - strlen(compared));
}

/* Whether `owner = value` is one of the conditions that AND combines. */
static bool requires_owner(const struct form *f, const char *text)
{
    size_t len = strlen(text), from = 0;
    bool quoted = false;
    int depth = 0;
    strip(&text, &len);
    for (size_t i = 0; i < len; i++) {
        quoted ^= text[i] == '\'';
        depth += quoted ? 0 : text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth || quoted || strncmp(text + i, " AND ", 5) != 0)
            continue;
        if (names_owner(f, text + from, i - from))
            return true;
        from = i + 5;
    }
    return names_owner(f, text + from, len - from);
}

/* ---- plans ---- */

static bool is_owned(const char *table)
{
    for (int i = 0; i < table_count; i++)
        if (strcmp(tables[i], table) == 0)
            return true;
    return false;
}

static bool is_owned_scan(const json_t *node)
{
    const char *table = json_string_value(json_object_get(node, "Relation Name"));
    const char *type = json_string_value(json_object_get(node, "Node Type"));
    return table && is_owned(table) && strcmp(type, "ModifyTable") != 0;
}

static bool is_limited(const struct form *f, const json_t *node)
{
    static const char *const conditions[] = { "Index Cond", "Recheck Cond", "Filter" };
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const char *text = json_string_value(json_object_get(node, conditions[i]));
        if (text && requires_owner(f, text))
            return true;
    }
    return false;
}

/* Remembers the aliases of the scans that are limited to the owner. */
static void bind(struct form *f, const json_t *node)
{
    size_t i;
    json_t *child;
    if (is_owned_scan(node) && is_limited(f, node) && f->bound_count < MOST_BOUND)
        f->bound[f->bound_count++] = json_string_value(json_object_get(node, "Alias"));
    json_array_foreach(json_object_get(node, "Plans"), i, child) bind(f, child);
}

static void walk(struct form *f, const json_t *node)
{
    size_t i;
    json_t *child;
    if (is_owned_scan(node) && !is_limited(f, node))
        f->found(f, json_string_value(json_object_get(node, "Relation Name")));
    json_array_foreach(json_object_get(node, "Plans"), i, child) walk(f, child);
}

/* The text with the owner as $100 instead of $1: PostgreSQL 15 prints values from elsewhere in the plan as
 * $0, $1, ... too. */
static const char *renamed(struct arena *arena, const char *sql)
{
    struct buf out = { .arena = arena };
    for (const char *p = sql; *p; p++) {
        buf_char(&out, *p);
        if (p[0] == '$' && p[1] == '1' && !isdigit((unsigned char)p[2])) {
            buf_text(&out, "100");
            p++;
        }
    }
    return buf_string(&out);
}

/* Calls `found` for each scan of an owned table that is not limited to the owner. */
static void explain(struct form *f)
{
    struct arena arena = { 0 };
    struct buf sql = { .arena = &arena };
    Oid types[MOST_PARAMS] = { 0 };
    for (int i = 0; i < MOST_PARAMS && !f->together; i++)
        types[i] = i == 0 || i >= f->params ? TEXT_OID : 0;
    int count = f->together ? f->params : MOST_PARAMS;
    PGresult *r = PQprepare(pg, "s", f->together ? f->sql : renamed(&arena, f->sql), count, types);
    owned_ok(pg, r, f->name);
    PQclear(r);
    buf_text(&sql, "explain (format json) execute s");
    for (int i = 0; i < count; i++)
        buf_fmt(&sql, "%snull%s", i ? ", " : "(", i + 1 < count ? "" : ")");
    r = database_query(pg, buf_string(&sql));
    json_t *plans = json_loads(PQgetvalue(r, 0, 0), 0, NULL);
    ck_assert_ptr_nonnull(plans);
    const json_t *plan = json_object_get(json_array_get(plans, 0), "Plan");
    bind(f, plan);
    walk(f, plan);
    json_decref(plans);
    PQclear(r);
    owned_run(pg, "deallocate s");
    arena_release(&arena);
}

/* The plans must not depend on how many rows there are: indexes, and nested loops, which hand the owner down.
 */
static void setup(void)
{
    pg = database_migrated("owner_plans");
    owned_run(pg,
              "set search_path = daybook, public; set jit = off; set plan_cache_mode = force_generic_plan;"
              "set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off");
    table_count = owned_tables(pg, tables);
}

static void teardown(void)
{
    database_finish(pg);
}

/* ---- the tests ---- */

static int failures;

static void report(const struct form *f, const char *table)
{
    for (int i = 0; i < EXCEPTIONS; i++)
        if (strcmp(exceptions[i].statement, f->name) == 0 && strcmp(exceptions[i].table, table) == 0) {
            exceptions[i].used = true;
            return;
        }
    failures++;
    fprintf(stderr, "%s reads %s without owner = :owner\n", f->name, table);
}

/* The form for several requests takes an array of owners. It loops over the requests, q; the statement inside
 * must stay with the owner of its request, q.p1, as the single form does with $1. */
START_TEST(every_scan_of_an_owned_table_is_limited_to_the_owner)
{
    failures = 0;
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        explain(&(struct form){ st->name, st->sql, "$100", false, st->param_count, report });
        if (st->together)
            explain(&(struct form){ st->together_name, st->together, "q.p1", true, st->param_count, report });
    }
    ck_assert_msg(failures == 0, "%d scans are not limited to the owner (listed above)", failures);
    for (int i = 0; i < EXCEPTIONS; i++)
        ck_assert_msg(exceptions[i].used, "%s no longer needs its exception for %s: remove it",
                      exceptions[i].statement, exceptions[i].table);
}
END_TEST

static int found_count;

static void count_found(const struct form *f, const char *table)
{
    (void)f;
    (void)table;
    found_count++;
}

START_TEST(a_scan_that_is_not_limited_to_the_owner_is_found)
{
    static const struct {
        const char *sql;
        int found;
    } cases[] = {
        { "select id from lessons where owner = $1", 0 },
        { "select id from lessons l where l.owner = $1 and (at > now() or at is null)", 0 },
        { "select id from lessons where $1::text <> ''", 1 },
        { "select id from lessons where owner = $1 or id is null", 1 },
        { "select id from lessons where owner <> $1", 1 },
        { "select id from lessons where context = $1", 1 },
        { "select b.id from lessons a join lessons b on b.id = a.id where a.owner = $1", 1 },
        /* The planner derives the owner of b here, but cannot in the limited subquery. */
        { "select b.id from lessons a join lessons b on b.owner = a.owner where a.owner = $1", 0 },
        { "select b.id from lessons a cross join lateral (select x.id from lessons x where x.owner = a.owner "
          "order by x.at desc limit 1) b where a.owner = $1",
          1 },
        { "delete from lessons where owner = $1", 0 },
        { "update lessons set context = $1", 1 },
        { "with w as (delete from lessons returning id) select from w where $1::text is null", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        found_count = 0;
        explain(&(struct form){ "case", cases[i].sql, "$100", false, 1, count_found });
        ck_assert_msg(found_count == cases[i].found, "%s: %d", cases[i].sql, found_count);
    }
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &every_scan_of_an_owned_table_is_limited_to_the_owner,
        &a_scan_that_is_not_limited_to_the_owner_is_found,
    };
    return database_tests("owner_plans", tests, sizeof tests / sizeof *tests, setup, teardown);
}

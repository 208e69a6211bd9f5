/* The check of all queries before the port opens: every declared query passes, and a wrong name is rejected
 * with a message that says where it is. */
#include <check.h>

#include "handlers/kit/fields.h"
#include "server/dispatch/query.h"
#include "tests/db/database.h"
#include "tests/server/stderr.h"

static PGconn *pg;
static struct arena arena;
static const struct described *described;

static void setup(void)
{
    char words[128];
    pg = database_migrated("queries");
    snprintf(words, sizeof words, "dbname=%s", PQdb(pg));
    ck_assert(admin_migrate_and_describe(database_url(words), 0, NULL, &arena, &described));
}

/* Describes the statements again, after a change of the schema. */
static void rejected_after(const char *sql, const char *what)
{
    char words[128];
    PQclear(database_query(pg, sql));
    snprintf(words, sizeof words, "dbname=%s", PQdb(pg));
    stderr_begin();
    bool good = admin_migrate_and_describe(database_url(words), 0, NULL, &arena, &described);
    const char *said = stderr_end();
    ck_assert_msg(!good, "%s was taken", sql);
    ck_assert_msg(strstr(said, what), "%s", said);
}

static void teardown(void)
{
    arena_release(&arena);
    database_finish(pg);
}

struct in {
    const char *id, *skill_id, *as_of;
    struct cursor_values cursor;
    int64_t limit;
};

static const struct field get_fields[] = { FIELD_ID(struct in), FIELD_AS_OF(struct in), END_FIELDS };
static const struct field page_fields[] = { FIELD_ID(struct in), FIELD_AS_OF(struct in),
                                            FIELD_PAGE(struct in), END_FIELDS };
static const struct field versions_fields[] = { FIELD(FROM_PATH, KIND_LINE, struct in, skill_id),
                                                FIELD_AS_OF(struct in), FIELD_PAGE(struct in), END_FIELDS };
static const struct field unlimited_fields[] = { FIELD_ID(struct in), FIELD_AS_OF(struct in),
                                                 FIELD(FROM_QUERY, KIND_CURSOR, struct in, cursor),
                                                 FIELD(FROM_QUERY, KIND_LINE, struct in, limit), END_FIELDS };
static const struct field short_fields[] = { FIELD_ID(struct in), END_FIELDS };

/* Like QUERY, but without adding it to the queries of the service. */
#define TRIED(name_, statement_, table_, ...)                       \
    const struct query name_ = { .statement = &statement_,          \
                                 .fields = (table_),                \
                                 .name = #name_,                    \
                                 .file = "handlers/wrong.c",        \
                                 .line = 7,                         \
                                 .plan = &(struct query_plan){ 0 }, \
                                 __VA_ARGS__ }

static void refused(const struct query *q, const char *what)
{
    const char *why = query_check(q, described, &arena);
    ck_assert_msg(why, "%s was taken", q->name);
    ck_assert_msg(strstr(why, "handlers/wrong.c:7"), "%s", why);
    ck_assert_msg(strstr(why, what), "%s", why);
}

START_TEST(every_declared_query_passes)
{
    ck_assert(query_check_all(described));
    ck_assert_int_gt(query_count(), 50);
}
END_TEST

START_TEST(an_unknown_parameter_is_rejected)
{
    TRIED(wrong, LESSON_GET, short_fields);
    refused(&wrong, "lesson_get takes :as_of");
    TRIED(none, LESSON_GET, NULL);
    refused(&none, "lesson_get takes :id");
    TRIED(no_cursor, LESSON_HISTORY, get_fields);
    refused(&no_cursor, "lesson_history takes :cursor_1");
}
END_TEST

START_TEST(an_unknown_column_is_rejected)
{
    COLUMNS(good, id, takeaway);
    COLUMNS(wrong, id, takeawy);
    TRIED(right, LESSON_GET, get_fields, READS(good));
    ck_assert_ptr_null(query_check(&right, described, &arena));
    TRIED(typo, LESSON_GET, get_fields, READS(wrong));
    refused(&typo, "lesson_get has no column takeawy");
}
END_TEST

START_TEST(a_list_with_a_cursor_needs_cursor_columns)
{
    TRIED(page, LESSON_HISTORY, page_fields);
    ck_assert_ptr_null(query_check(&page, described, &arena));
    struct described *without = arena_alloc(&arena, (size_t)statements_count * sizeof *without);
    memcpy(without, described, (size_t)statements_count * sizeof *without);
    without[LESSON_HISTORY.index].count = 1;
    const char *why = query_check(&page, without, &arena);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, "_cursor_1"));
}
END_TEST

START_TEST(each_part_of_a_cursor_needs_its_parameter_and_its_column)
{
    TRIED(page, SKILL_VERSION_LIST, versions_fields);
    ck_assert_ptr_null(query_check(&page, described, &arena));
    struct described *without = arena_alloc(&arena, (size_t)statements_count * sizeof *without);
    memcpy(without, described, (size_t)statements_count * sizeof *without);
    struct described *list = &without[SKILL_VERSION_LIST.index];
    while (strcmp(list->names[list->count - 1], "_cursor_2") != 0)
        list->count--;
    list->count--;
    const char *why = query_check(&page, without, &arena);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, ":cursor_2"));
}
END_TEST

START_TEST(a_list_with_a_cursor_needs_a_number_as_its_limit)
{
    TRIED(wrong, LESSON_HISTORY, unlimited_fields);
    refused(&wrong, "has a cursor but no limit");
}
END_TEST

START_TEST(the_text_of_a_404_names_fields_of_its_table)
{
    TRIED(wrong, LESSON_GET, get_fields, .missing = "lesson {ident}");
    refused(&wrong, "ident");
}
END_TEST

START_TEST(a_column_missing_from_new_rows_of_a_tick_stops_the_start)
{
    rejected_after("alter table daybook.trade_history add column venue text",
                   "new_trade does not fit trade_history");
    rejected_after("alter table daybook.decision_snapshots add column venue text",
                   "new_snapshot does not fit decision_snapshots");
}
END_TEST

static void route_refused(const struct route *r, const char *what)
{
    const char *why = query_check_route(r, &arena);
    ck_assert_msg(why, "%s was taken", r->path);
    ck_assert_msg(strstr(why, r->path) && strstr(why, what), "%s", why);
}

static enum err handle(struct call *c)
{
    (void)c;
    return OK;
}

static enum err render(struct call *c, const struct rows *r)
{
    (void)c;
    (void)r;
    return OK;
}

START_TEST(a_route_of_one_object_needs_the_text_of_its_404)
{
    TRIED(get, LESSON_GET, get_fields);
    struct route r = { GET, "/v1/x", .query = &get, INPUT(get_fields, struct in), .role = ROLE_READER };
    route_refused(&r, "get (handlers/wrong.c:7) must say what is missing");
    TRIED(named, LESSON_GET, get_fields, .missing = "lesson {id}");
    r.query = &named;
    ck_assert_ptr_null(query_check_route(&r, &arena));
}
END_TEST

START_TEST(a_route_of_a_list_needs_a_cursor_or_a_renderer)
{
    TRIED(block, LESSON_BLOCK, page_fields);
    struct route r = { GET, "/v1/x", .query = &block, INPUT(page_fields, struct in), .role = ROLE_READER };
    route_refused(&r, "block (handlers/wrong.c:7) is a list without a cursor");
    r.render = render;
    ck_assert_ptr_null(query_check_route(&r, &arena));
}
END_TEST

START_TEST(a_slow_statement_needs_a_route_that_waits)
{
    TRIED(slow, LESSON_EXPORT, page_fields);
    struct route r = { GET, "/v1/slow", .query = &slow, INPUT(page_fields, struct in), .role = ROLE_READER };
    route_refused(&r, "slow (handlers/wrong.c:7) is slow");
    r.waits = true;
    ck_assert_ptr_null(query_check_route(&r, &arena));
}
END_TEST

START_TEST(an_export_needs_the_fields_of_its_route_and_pages)
{
    TRIED(list, LESSON_HISTORY, page_fields);
    TRIED(get, LESSON_GET, get_fields, .missing = "lesson {id}");
    ck_assert_ptr_null(query_check(&list, described, &arena));
    ck_assert_ptr_null(query_check(&get, described, &arena));
    struct route r = { GET,
                       "/v1/x/export",
                       handle,
                       .exports = &list,
                       INPUT(page_fields, struct in),
                       .role = ROLE_READER,
                       .waits = true };
    ck_assert_ptr_null(query_check_route(&r, &arena));
    r.fields = get_fields;
    route_refused(&r, "list (handlers/wrong.c:7) has a different field table");
    r.exports = &get;
    route_refused(&r, "get (handlers/wrong.c:7) has no pages");
}
END_TEST

START_TEST(a_route_has_one_handler_that_may_run_queries)
{
    TRIED(get, LESSON_GET, get_fields);
    struct route r = { GET, "/v1/x", handle, INPUT(get_fields, struct in), .role = ROLE_READER };
    route_refused(&r, "must be marked waits");
    r.waits = true;
    ck_assert_ptr_null(query_check_route(&r, &arena));
    r.query = &get;
    route_refused(&r, "and not both");
    r.handle = NULL;
    r.fields = short_fields;
    route_refused(&r, "a different field table");
}
END_TEST

START_TEST(a_statement_without_a_query_is_rejected)
{
    static const struct statement idle = { .name = "idle_statement" };
    const char *why = query_check_statement(&idle, &arena);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, "idle_statement"));
    ck_assert_ptr_null(query_check_statement(&LESSON_GET, &arena));
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &every_declared_query_passes,
        &an_unknown_parameter_is_rejected,
        &an_unknown_column_is_rejected,
        &a_list_with_a_cursor_needs_cursor_columns,
        &each_part_of_a_cursor_needs_its_parameter_and_its_column,
        &a_list_with_a_cursor_needs_a_number_as_its_limit,
        &the_text_of_a_404_names_fields_of_its_table,
        &a_column_missing_from_new_rows_of_a_tick_stops_the_start,
        &a_route_of_one_object_needs_the_text_of_its_404,
        &a_route_of_a_list_needs_a_cursor_or_a_renderer,
        &a_slow_statement_needs_a_route_that_waits,
        &an_export_needs_the_fields_of_its_route_and_pages,
        &a_route_has_one_handler_that_may_run_queries,
        &a_statement_without_a_query_is_rejected,
    };
    return database_tests("queries", tests, sizeof tests / sizeof *tests, setup, teardown);
}

/* Queries: a statement, the field table that its parameters are taken from, and the columns that are read
 * from its rows. A statement is only run as a query, and all queries are checked before the port opens.
 *
 *     COLUMNS(block, id, takeaway, total);
 *     QUERY(lesson_block, LESSON_BLOCK, block_fields, READS(block));
 *     QUERY(lesson_get, LESSON_GET, get_fields, .missing = "lesson {id}");
 */
#ifndef DAYBOOK_SERVER_DISPATCH_QUERY_H
#define DAYBOOK_SERVER_DISPATCH_QUERY_H

#include "core/base/cursor.h"
#include "db/column.h"
#include "db/db.h"
#include "db/describe.h"
#include "server/call.h"

struct query {
    const struct statement *statement;
    const struct field *fields;    /* NULL: it takes none */
    const struct columns *columns; /* NULL: C code reads none */
    /* What was not found when there is no row: "lesson {id}", with names of `fields`. A list that has it is
     * about that one thing: its first page is never empty. */
    const char *missing;
    const char *name, *file;
    int line;
    struct query_plan *plan; /* made by queries_check */
};

/* How its parameters and columns are found, made once before the service starts. */
struct query_plan {
    const struct param *params;
    struct column_map map;
};

/* clang-format off */
#define QUERY(name_, statement_, table_, ...)         static QUERY_DEFINED(name_, statement_, table_, __VA_ARGS__)
#define READS(set) .columns = &set##_columns
/* For a query that several files use: QUERY_SHARED(x) in the header, QUERY_DEFINED(x, ...) in one of them. */
#define QUERY_SHARED(name_) extern const struct query name_
#define QUERY_DEFINED(name_, statement_, table_, ...) \
    const struct query name_ = { .statement = &statement_, .fields = (table_), .name = #name_, \
        .file = __FILE__, .line = __LINE__, .plan = &(struct query_plan){ 0 }, __VA_ARGS__ }; \
    /* the linker gathers all of them */ \
    static const struct query *const name_##_known __attribute__((used, section("daybook_queries"))) = &name_
/* clang-format on */

/* Parameters are taken by name: `owner`, `request_id`, `now` and `new_id` are the call's, all others are
 * fields of the query's table, with their values in the struct `in` that the table describes. */

/* For handlers that wait (route.waits). Rows and parameters live in `arena`; NULL: as long as the call. */
enum err query_rows(struct call *c, const struct query *q, const void *in, struct arena *arena,
                    struct rows **rows) must_check;
/* The same, where no row is ERR_NOT_FOUND with the query's own detail. */
enum err query_one(struct call *c, const struct query *q, const void *in, struct arena *arena,
                   struct rows **rows) must_check;
enum err query_run(struct call *c, const struct query *q, const void *in) must_check;
/* The same for a task that works for no request; its queries must not take `now`. */
enum err query_task_rows(struct task *t, const struct query *q, const void *in, struct arena *arena,
                         struct rows **rows) must_check;
/* The rows become the answer, by the statement's shape: one object (or 404), a page, or no content (also when
 * `status` is 204). */
enum err query_reply(struct call *c, int status, const struct query *q, const void *in) must_check;

/* Runs fn(c, arg) in one transaction (see db_tx), and stores with it the reply for the call's
 * Idempotency-Key, if fn has made the reply. Inside another transaction fn is part of that one. For handlers
 * that wait. */
enum err query_tx(struct call *c, enum err (*fn)(struct call *c, void *arg), void *arg) must_check;

/* ERR_NOT_FOUND that says what: "there is no lesson 0192...". */
enum err query_missing(struct call *c, const struct query *q, const void *in) must_check;

typedef void query_item(struct buf *out, const struct rows *r, int row);
/* The page {items, next_cursor} of at most in->limit rows; the statement fetched one more to know whether
 * there is a next one. `put` writes an item; NULL: rows_json. */
void query_page(struct call *c, struct buf *out, const struct query *q, const void *in, const struct rows *r,
                query_item *put);

/* The handler of a route that names its query: `prepare`, the query, `render` (see struct route). A route
 * that does not wait returns at once, and the answer follows. */
enum err query_route(struct call *c) must_check;
/* Runs the route, whichever kind it is. */
enum err route_run(struct call *c) must_check;

/* ---- before the port opens ---- */

/* `described` is by the index of the statements. Checks that every parameter is a field or the call's own,
 * that every column that is read exists, that pages have cursors, that routes which do not wait run no slow
 * statement, and that each statement is used; and makes the plans. Says on stderr what is wrong, with file
 * and name. */
bool queries_check(const struct described *described);
/* The same, asking that database. */
bool queries_ready(const char *database_url);
/* The parts of it, for tests: NULL, or what is wrong, in `arena`. */
const char *query_check(const struct query *q, const struct described *described, struct arena *arena);
const char *route_check(const struct route *r, struct arena *arena);
const char *statement_check(const struct statement *st, struct arena *arena); /* that a query uses it */
int queries_count(void);

#endif

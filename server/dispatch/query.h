/* Queries: a statement, the field table of its parameters, and the columns that C code reads. Statements run
 * only as queries, and all queries are checked before the port opens.
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
#include "db/row.h"
#include "server/dispatch/call.h"

struct query {
    const struct statement *statement;
    const struct field *fields;    /* NULL: no parameters from fields */
    const struct columns *columns; /* NULL: C code reads none */
    /* Names the resource in a 404: "lesson {id}", with names from `fields`. A list with it belongs to that
     * resource: an empty first page is a 404. */
    const char *missing;
    const char *name, *file;
    int line;
    struct query_plan *plan; /* made by query_check_all */
};

/* Where the parameters and columns are; computed once before the service starts. */
struct query_plan {
    const struct param *params;
    struct column_map map;
    const struct field *limit, *cursor; /* of a list that is read in pages; else NULL */
};

/* clang-format off */
#define QUERY(name_, statement_, table_, ...)         static QUERY_DEFINED(name_, statement_, table_, __VA_ARGS__)
#define READS(set) .columns = &set##_columns
/* For a query that several files use: QUERY_SHARED(x) in the header, QUERY_DEFINED(x, ...) in one of them. */
#define QUERY_SHARED(name_) extern const struct query name_
#define QUERY_DEFINED(name_, statement_, table_, ...) \
    const struct query name_ = { .statement = &statement_, .fields = (table_), .name = #name_, \
        .file = __FILE__, .line = __LINE__, .plan = &(struct query_plan){ 0 }, __VA_ARGS__ }; \
    /* the linker collects all queries in this section */ \
    static const struct query *const name_##_known __attribute__((used, section("daybook_queries"))) = &name_
/* clang-format on */

/* Parameters are matched by name: `owner`, `request_id`, `now` and `new_id` come from the call, all others
 * from the struct `in` that the query's field table describes. */

/* Only in a coroutine (route.waits). Rows and parameters are allocated in `arena`; NULL: the call's arena. */
enum err query_rows(struct call *c, const struct query *q, const void *in, struct arena *arena,
                    struct rows **rows) must_check;
/* The same, but no row is ERR_NOT_FOUND with the query's `missing` as detail. */
enum err query_one(struct call *c, const struct query *q, const void *in, struct arena *arena,
                   struct rows **rows) must_check;
enum err query_run(struct call *c, const struct query *q, const void *in) must_check;
/* Undoes a claim when the work has ended, with `ended`. Waits, so that a retry finds it undone; once the time
 * of the call is up it only sends the statement, so that the reply is not held up. */
void query_clean_up(struct call *c, const struct query *q, const void *in, enum err ended);
/* For a reply that repeats what an earlier transaction stored: waits until that is as durable as a commit of
 * this call, on disk and on the synchronous standbys. Inside a transaction, its commit waits. Call it after
 * the read that found the rows. */
enum err query_durable(struct call *c) must_check;
/* The same as query_rows for a task that works for no request; its queries must not take `now`. */
enum err query_task_rows(struct task *t, const struct query *q, const void *in, struct arena *arena,
                         struct rows **rows) must_check;
/* Replies with the rows by the statement's shape: one object (or 404), a page, or no content (also if
 * `status` is 204). */
enum err query_reply(struct call *c, int status, const struct query *q, const void *in) must_check;

/* Runs fn(c, arg) in one transaction (see db_tx). If fn makes the reply, it is stored for the call's
 * Idempotency-Key in the same transaction. Inside another transaction, fn joins that one. Only in a
 * coroutine. */
enum err query_tx(struct call *c, enum err (*fn)(struct call *c, void *arg), void *arg) must_check;

/* Returns ERR_NOT_FOUND with the detail "there is no lesson 0192...". */
enum err query_missing(struct call *c, const struct query *q, const void *in) must_check;

typedef void query_item(struct buf *out, const struct rows *r, int row);
/* Writes the page {items, next_cursor} of at most in->limit rows. The statement fetches one row more, which
 * shows whether there is a next page. `put` writes an item; NULL: rows_json. ERR_INTERNAL: the statement
 * takes no cursor. */
enum err query_page(struct call *c, struct buf *out, const struct query *q, const void *in,
                    const struct rows *r, query_item *put) must_check;

/* The handler of a route with a query: `prepare`, the query, `render` (see struct route). If the route does
 * not wait, this returns immediately and the query's callback replies. */
enum err query_route(struct call *c) must_check;
/* Runs the route's handler or query. */
enum err query_run_route(struct call *c) must_check;

/* ---- before the port opens ---- */

/* Checks that every parameter is a field or comes from the call, that every column that is read exists, that
 * pages have cursors and limits, that routes which do not wait run no slow statement, and that each statement
 * is used.
 * Also makes the plans. Prints each mistake on stderr with file and name. `described` is indexed like the
 * statements. */
bool query_check_all(const struct described *described);
/* Parts of query_check_all, for tests. Return NULL or a message in `arena`. */
const char *query_check(const struct query *q, const struct described *described, struct arena *arena);
const char *query_check_route(const struct route *r, struct arena *arena);
const char *query_check_statement(const struct statement *st, struct arena *arena); /* a query must use it */
int query_count(void);

#endif

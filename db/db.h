/* The database as handlers see it: statements by name, rows that become answers, transactions. */
#ifndef DAYBOOK_DB_DB_H
#define DAYBOOK_DB_DB_H

#include "core/base/cursor.h"
#include "db/column.h"
#include "db/statement.h"
#include "server/call.h"

/* Opens and closes the connections of a loop. Opening does not wait. */
struct db *db_open(struct loop *loop, const char *url);
void db_close(struct db *db);
/* Sends what this turn has queued. */
void db_flush(struct db *db);
/* True when reads and writes can be served. */
bool db_ready(const struct db *db);

/* Parameters are taken by name: `owner`, `request_id`, `now` and `new_id` are the call's, all others are
 * fields of the route's table, as decoded or as the handler set them in call->in. */

/* The rows of the statement become the answer: one object (or 404), a page, or no content. A handler that
 * does not wait returns at once and the answer follows. */
enum err db_reply(struct call *c, int status, const struct statement *st) must_check;

/* The same where the rows become something else than themselves. `render` may send another statement by one
 * of these two; then the answer follows that one. */
enum err db_render(struct call *c, const struct statement *st,
                   enum err (*render)(struct call *c, const struct rows *r)) must_check;

/* The rest is for handlers that wait. */
enum err db_rows(struct call *c, const struct statement *st, struct rows **rows) must_check;
/* The same with parameters from another table and struct than the route's. */
enum err db_rows_from(struct call *c, const struct statement *st, const struct field *table,
                      const void *values, struct rows **rows) must_check;
enum err db_one(struct call *c, const struct statement *st,
                struct rows **rows) must_check; /* ERR_NOT_FOUND: no row */
enum err db_run(struct call *c, const struct statement *st) must_check;

/* What server/dispatch/query.c makes queries of: the values of the statement's parameters, in their order.
 * The first is for calls that wait, and its rows live in `arena`. The second returns at once; `done` takes
 * the rows (NULL unless `err` is OK). */
enum err db_values(struct call *c, const struct statement *st, const char *const *values, struct arena *arena,
                   struct rows **rows) must_check;
enum err db_send(struct call *c, const struct statement *st, const char *const *values,
                 void (*done)(struct call *c, struct rows *r, enum err err)) must_check;

/* Runs `body` in one transaction: commits when it returns OK, else rolls back. Serialization failures and
 * deadlocks run it again. Inside another transaction it is part of that one. */
enum err db_tx(struct call *c, enum err (*body)(struct call *c, void *arg), void *arg) must_check;
/* A point to return to inside a transaction. */
enum err db_savepoint(struct call *c) must_check;
enum err db_undo_to_savepoint(struct call *c) must_check;

/* One step of many, as in a long body: what the call allocates and the rows it gets until the end of the step
 * are released there. */
struct db_step {
    struct arena arena;
    struct rows *rows;
};
void db_step_begin(struct call *c, struct db_step *step);
void db_step_end(struct call *c, struct db_step *step);

int rows_count(const struct rows *r);
/* Says where the columns of a set stand in these rows; without it no handle can be used. */
void rows_bind(struct rows *r, const struct column_map *map);
/* The value as text, NULL for null. A handle of another set than the rows' ends the process. */
const char *row_text(const struct rows *r, int row, const struct column *column);
size_t row_bytes(const struct rows *r, int row, const struct column *column); /* its length */
/* The cursor that stands after this row (columns _cursor_1 and _cursor_2), as values of a field. */
void row_cursor(const struct rows *r, int row, struct arena *arena, struct cursor_values *values);
/* A timestamp as answers show it, without quotes. */
const char *row_time(const struct rows *r, int row, const struct column *column, struct arena *arena);
/* The value as text, NULL for null. The column must exist. */
const char *rows_text(const struct rows *r, int row, const char *column);
size_t rows_bytes(const struct rows *r, int row, const char *column); /* its length */
/* The row as a JSON object; columns whose name starts with '_' are left out. */
void rows_json(struct buf *out, const struct rows *r, int row);
/* The row as a line of CSV (core/base/csv.h), null as an empty cell; and the line of the columns' names. */
void rows_csv(struct buf *out, const struct rows *r, int row);
void rows_csv_names(struct buf *out, const struct rows *r);
/* The page {items, next_cursor} of at most `limit` rows; the statement fetched one more to know whether there
 * is a next one. */
void rows_page(struct buf *out, struct call *c, const struct rows *r);
/* The same with items that are more than their row. */
typedef void rows_item(struct buf *out, const struct rows *r, int row);
void rows_page_of(struct buf *out, struct call *c, const struct rows *r, rows_item *put);
/* The cursor that stands after this row (columns _cursor_1 and _cursor_2), as values of a field. */
void rows_cursor(struct call *c, const struct rows *r, int row, struct cursor_values *values);
/* A timestamp as answers show it, without quotes. */
const char *rows_time(struct arena *arena, const struct rows *r, int row, const char *column);
/* Releases rows before the call ends, in loops over many pages. */
void rows_release(struct call *c, struct rows *r);

/* For dispatch: releases what the call still holds. True when it had left a transaction open. */
bool db_call_end(struct call *c);
/* Wakes a call that waits for the database with this error; its statement goes on without it. False: it
 * cannot be woken, because a write of its own is under way and its outcome will be known. */
bool db_call_wake(struct call *c, enum err why, bool even_writes);

#endif

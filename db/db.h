/* The database of a loop: statements with their values in, rows out, and transactions. */
#ifndef DAYBOOK_DB_DB_H
#define DAYBOOK_DB_DB_H

#include "core/base/buf.h"
#include "core/base/cursor.h"
#include "db/column.h"
#include "db/statement.h"
#include "server/task.h"

struct op;
struct rows;

/* Opens and closes the connections of a loop. Opening does not wait. */
struct db *db_open(struct loop *loop, const char *url);
void db_close(struct db *db);
/* Sends what this turn has queued. */
void db_flush(struct db *db);
/* True when reads and writes can be served. */
bool db_ready(const struct db *db);

/* ---- statements ---- */

/* Runs a statement and waits for its rows, which live as long as `arena` (NULL: the task's). `values` are
 * those of its parameters, in their order, and must live as long as this waits. Only in a coroutine. */
enum err db_values(struct task *t, const struct statement *st, const char *const *values, struct arena *arena,
                   struct rows **rows) must_check;

/* The same without a coroutine: returns at once, and `done` is called once, later. The statement must not be
 * of the slow lane. The request and its values live until then. */
struct db_request {
    struct task_wait wait;
    struct op *op;
    void (*done)(struct db_request *r, enum err err);
    struct rows *rows; /* in the task's arena; NULL: it failed */
};
enum err db_send(struct task *t, struct db_request *r, const struct statement *st,
                 const char *const *values) must_check;

/* ---- transactions ---- */

/* Runs fn(arg) in one transaction: commits when it returns OK, else rolls back. Serialization failures and
 * deadlocks run it again. Inside another transaction it is part of that one. Only in a coroutine. */
enum err db_tx(struct task *t, enum err (*fn)(void *arg), void *arg) must_check;
bool db_in_tx(const struct task *t);
/* A point to return to inside a transaction. */
enum err db_savepoint(struct task *t) must_check;
enum err db_undo_to_savepoint(struct task *t) must_check;
/* The last statement failed only because of another transaction: tried again, it may succeed. */
bool db_failed_by_others(const struct task *t);
/* When the task ends. True: it had left a transaction open, which is rolled back. */
bool db_task_end(struct task *t);

/* ---- rows ---- */

int rows_count(const struct rows *r);
/* Says where the columns of a set stand in these rows; without it no handle can be used. */
void rows_bind(struct rows *r, const struct column_map *map);
/* The value as text, NULL for null. A handle of another set than the rows' ends the process. */
const char *row_text(const struct rows *r, int row, const struct column *column);
size_t row_bytes(const struct rows *r, int row, const struct column *column); /* its length */
/* The cursor that stands after this row (columns _cursor_1 and _cursor_2), as values of a field. */
void row_cursor(const struct rows *r, int row, struct arena *arena, struct cursor_values *values);
/* A timestamp as replies show it, without quotes. */
const char *row_time(const struct rows *r, int row, const struct column *column, struct arena *arena);
/* The row as a JSON object; columns whose name starts with '_' are left out. */
void rows_json(struct buf *out, const struct rows *r, int row);
/* The row as a line of CSV (core/base/csv.h), null as an empty cell; and the line of the columns' names. */
void rows_csv(struct buf *out, const struct rows *r, int row);
void rows_csv_names(struct buf *out, const struct rows *r);

#endif

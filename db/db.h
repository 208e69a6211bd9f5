/* The database API of a loop: statements, rows and transactions. */
#ifndef DAYBOOK_DB_DB_H
#define DAYBOOK_DB_DB_H

#include "core/base/buf.h"
#include "core/base/cursor.h"
#include "core/parquet/parquet.h"
#include "db/column.h"
#include "db/statement.h"
#include "server/task.h"

struct op;
struct rows;

/* The connections of a loop besides the one for reads. */
struct db_share {
    int write, slow;
};
/* Divides max_db_connections. False: they are too few for these loops; prints one line on stderr. */
bool db_divide(const struct config *config, int loops, struct db_share *share) must_check;

/* Opens and closes the connections of a loop. db_open does not wait for them; NULL: the URL is invalid. */
struct db *db_open(struct loop *loop, const char *url, struct db_share share);
void db_close(struct db *db);
/* Sends what was queued in this turn of the loop. */
void db_flush(struct db *db);
/* True when this loop can serve reads and writes. */
bool db_ready(const struct db *db);

/* Publishes the state of this loop. Called once per turn. */
void db_publish(struct db *db, bool keys_loaded);
/* Whether the whole service can serve reads and writes, by what all loops published and by the last test
 * write; never waits. If not, adds the reasons, in words for everybody. While it is called now and then, a
 * test write is made every two seconds. */
bool db_health(struct buf *why);

enum { LANES = LANE_SLOW + 1 };

struct db_stats {
    int64_t ready[LANES];     /* connections that can be used */
    int64_t in_flight[LANES]; /* statements sent or queued, and not answered */
    int64_t waiting;          /* requests waiting for a slow connection */
    int64_t reconnects, lost; /* since the start */
};
/* For the metrics page. */
void db_stats(const struct db *db, struct db_stats *out);

/* ---- statements ---- */

/* Runs a statement and waits for its rows. Only in a coroutine. The rows live as long as `arena` (NULL: the
 * task's). `values` holds the parameters in order, and must stay valid until this returns. */
enum err db_values(struct task *t, const struct statement *st, const char *const *values, struct arena *arena,
                   struct rows **rows) must_check;

/* The same without a coroutine: returns at once and calls `done` once, later. The request and its values must
 * stay valid until then. The statement must not be of the slow lane. */
struct db_request {
    struct task_wait wait;
    struct op *op;
    void (*done)(struct db_request *r, enum err err);
    struct rows *rows; /* in the task's arena; NULL on failure */
};
enum err db_send(struct task *t, struct db_request *r, const struct statement *st,
                 const char *const *values) must_check;

/* Runs a statement of the write lane without waiting for it, also when the task is cancelled: for clean-up
 * that need not succeed. Copies the values. */
void db_post(struct task *t, const struct statement *st, const char *const *values);

/* ---- transactions ---- */

/* Runs fn(arg) in a transaction: commits when it returns OK, else rolls back. Retries after serialization
 * failures and deadlocks. Inside a transaction, fn becomes part of it. Only in a coroutine. */
enum err db_tx(struct task *t, enum err (*fn)(void *arg), void *arg) must_check;
bool db_in_tx(const struct task *t);
/* Sets the savepoint of the transaction, and rolls back to it. There is one per transaction. */
enum err db_savepoint(struct task *t) must_check;
enum err db_rollback_to_savepoint(struct task *t) must_check;
/* The last statement failed by a serialization failure or a deadlock: a retry may succeed. */
bool db_is_retryable(const struct task *t);
/* Called when a task ends. Rolls back a transaction that it left open, and returns whether there was one. */
bool db_task_end(struct task *t);

/* ---- rows ---- */

int rows_count(const struct rows *r);
/* Sets the column positions of these rows. Must come before any read by handle. */
void rows_bind(struct rows *r, const struct column_map *map);
/* The value as text, NULL for null. Aborts the process if the handle is not of the set bound to the rows. */
const char *rows_text(const struct rows *r, int row, const struct column *column);
size_t rows_bytes(const struct rows *r, int row, const struct column *column); /* length of the value */
/* The cursor of the page after this row, from the columns _cursor_1 and _cursor_2. */
void rows_cursor(const struct rows *r, int row, struct arena *arena, struct cursor_values *values);
/* A timestamp in the format of responses, without quotes. */
const char *rows_time(const struct rows *r, int row, const struct column *column, struct arena *arena);
/* The row as a JSON object; columns whose name starts with '_' are left out. */
void rows_json(struct buf *out, const struct rows *r, int row);
/* The same without the braces: adds the members to an object that the caller begins and ends. */
void rows_members(struct buf *out, const struct rows *r, int row);
/* The row as a line of CSV (core/base/csv.h), with null as an empty cell; and the header line. */
void rows_csv(struct buf *out, const struct rows *r, int row);
void rows_csv_names(struct buf *out, const struct rows *r);
/* A file with the columns of the rows (core/parquet/parquet.h); a number of PostgreSQL's type numeric has
 * two: its text, and its double, whose name ends in _double. The caller frees it. */
struct parquet *rows_parquet_open(const struct rows *r, const struct parquet_codec *codec,
                                  size_t group_bytes);
/* Adds the row to that file. What it needs meanwhile is in `arena`. */
void rows_parquet(struct parquet *p, const struct rows *r, int row, struct arena *arena);

#endif

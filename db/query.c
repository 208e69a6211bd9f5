/* Statements as handlers use them: parameters by name, rows that become answers, transactions. */
#include "db/db.h"

#include <assert.h>
#include <string.h>

#include "core/base/uuid.h"
#include "db/lanes.h"
#include "db/rows.h"
#include "server/config.h"
#include "server/coro.h"
#include "server/id.h"

enum { TX_TRIES = 4 };

static const char *param_value(struct call *c, const char *name, const struct field *table, const void *from)
{
    if (strcmp(name, "owner") == 0)
        return c->owner;
    if (strcmp(name, "new_id") == 0)
        return id_new(&c->arena);
    if (strcmp(name, "now") == 0)
        return c->now;
    if (strcmp(name, "request_id") == 0)
        return c->request_id;
    return field_param(table, from, name, &c->arena);
}

static const char *const *params(struct call *c, const struct statement *st, const struct field *table,
                                 const void *from)
{
    const char **values = arena_alloc(&c->arena, (size_t)(st->param_count + 1) * sizeof *values);
    for (int i = 0; i < st->param_count; i++)
        values[i] = param_value(c, st->params[i], table, from);
    return values;
}

/* How the rows of a statement become the answer: by its shape, or by the handler's own function. */
struct render {
    int status;
    enum err (*own)(struct call *c, const struct rows *r);
};

static enum err rows_reply(struct call *c, const struct render *how, const struct statement *st,
                           const struct rows *r)
{
    if (st->shape == SHAPE_ONE && rows_count(r) == 0)
        return ERR_NOT_FOUND;
    if (how->own)
        return how->own(c, r);
    if (st->shape == SHAPE_NONE) {
        c->reply.status = 204;
        return OK;
    }
    struct buf *out = reply_json(c, how->status);
    if (st->shape == SHAPE_LIST)
        rows_page(out, c, r);
    else
        rows_json(out, r, 0);
    return OK;
}

/* ---- handlers that do not wait ---- */

static void reply_done(struct op *op, PGresult *result, enum err err)
{
    struct call *c = op->user;
    c->op = NULL;
    if (err == OK)
        err = rows_reply(c, op->render, op->statement, rows_keep(c, op, result, &c->arena));
    if (err != OK || !c->op) /* else what it found led to another statement */
        call_answer(c, err);
}

static enum err reply_with(struct call *c, const struct statement *st, struct render how)
{
    if (coro_self()) {
        struct rows *r;
        TRY(db_rows(c, st, &r));
        return rows_reply(c, &how, st, r);
    }
    assert(st->lane != LANE_SLOW); /* such a route must be marked `waits` */
    struct render *kept = arena_alloc(&c->arena, sizeof *kept);
    *kept = how;
    struct op *op = op_new(c->loop->db);
    op->statement = st;
    op->values = params(c, st, c->route->fields, c->in);
    op->done = reply_done;
    op->user = c;
    op->render = kept;
    op->writes = op->alone = st->lane == LANE_WRITE;
    enum err err = lane_send(c->loop->db, op);
    if (err == OK)
        c->op = op;
    else
        op_free(c->loop->db, op);
    return err;
}

static void send_done(struct op *op, PGresult *result, enum err err)
{
    struct call *c = op->user;
    c->op = NULL;
    c->rows_done(c, err == OK ? rows_keep(c, op, result, &c->arena) : NULL, err);
}

enum err db_send(struct call *c, const struct statement *st, const char *const *values,
                 void (*done)(struct call *c, struct rows *r, enum err err))
{
    struct op *op = op_new(c->loop->db);
    op->statement = st;
    op->values = values;
    op->done = send_done;
    op->user = c;
    op->writes = op->alone = st->lane == LANE_WRITE;
    enum err err = lane_send(c->loop->db, op);
    if (err != OK) {
        op_free(c->loop->db, op);
        return err;
    }
    c->op = op;
    c->rows_done = done;
    return OK;
}

enum err db_reply(struct call *c, int status, const struct statement *st)
{
    return reply_with(c, st, (struct render){ .status = status });
}

enum err db_render(struct call *c, const struct statement *st,
                   enum err (*render)(struct call *c, const struct rows *r))
{
    return reply_with(c, st, (struct render){ .own = render });
}

/* ---- handlers that wait ---- */

struct waiter {
    struct call *call;
    PGresult *result;
    enum err err;
};

static void wake(struct op *op, PGresult *result, enum err err)
{
    struct waiter *w = op->user;
    w->result = result;
    w->err = err;
    w->call->retry = op->retryable;
    w->call->op = NULL;
    coro_resume(w->call->coro);
}

/* Sends on `conn` (NULL: the statement's lane) and waits for the result. */
static enum err run(struct call *c, struct conn *conn, struct op *op, PGresult **result)
{
    struct waiter w = { .call = c };
    op->done = wake;
    op->user = &w;
    op->alone = conn || op->writes;
    enum err err = conn ? conn_send(conn, op) : lane_send(c->loop->db, op);
    if (err != OK) {
        op_free(c->loop->db, op);
        return err;
    }
    c->op = op;
    c->coro = coro_self();
    c->wake = OK;
    coro_wait();
    c->coro = NULL;
    if (c->wake != OK) { /* the statement goes on without us */
        if (conn)
            conn->poisoned = true;
        return c->wake;
    }
    *result = w.result;
    return w.err;
}

enum err db_values(struct call *c, const struct statement *st, const char *const *values, struct arena *arena,
                   struct rows **rows)
{
    struct conn *conn = c->tx;
    if (!conn && st->lane == LANE_SLOW)
        TRY(lane_take(c, &conn));
    struct op *op = op_new(c->loop->db);
    op->statement = st;
    op->values = values;
    op->writes = !c->tx && st->lane == LANE_WRITE; /* in a transaction only the commit decides */
    PGresult *result = NULL;
    enum err err = run(c, conn, op, &result);
    if (conn && conn != c->tx)
        lane_give(c->loop->db, conn);
    if (err == OK)
        *rows = rows_keep(c, op, result, arena); /* which lives until this coroutine waits again */
    return err;
}

enum err db_rows_from(struct call *c, const struct statement *st, const struct field *table,
                      const void *values, struct rows **rows)
{
    return db_values(c, st, params(c, st, table, values), &c->arena, rows);
}

enum err db_rows(struct call *c, const struct statement *st, struct rows **rows)
{
    return db_rows_from(c, st, c->route->fields, c->in, rows);
}

enum err db_one(struct call *c, const struct statement *st, struct rows **rows)
{
    TRY(db_rows(c, st, rows));
    return rows_count(*rows) ? OK : ERR_NOT_FOUND;
}

enum err db_run(struct call *c, const struct statement *st)
{
    struct rows *r;
    TRY(db_rows(c, st, &r));
    rows_release(c, r);
    return OK;
}

/* ---- transactions ---- */

/* Sends without waiting: if it fails, so does what follows it. */
static enum err tx_say(struct call *c, const char *sql)
{
    struct op *op = op_new(c->loop->db);
    op->plain = sql;
    enum err err = conn_send(c->tx, op);
    if (err != OK)
        op_free(c->loop->db, op);
    return err;
}

static enum err tx_commit(struct call *c)
{
    struct op *op = op_new(c->loop->db);
    op->plain = "COMMIT";
    op->writes = true;
    PGresult *result = NULL;
    TRY(run(c, c->tx, op, &result));
    bool committed = strcmp(PQcmdStatus(result), "COMMIT") == 0; /* a broken transaction answers ROLLBACK */
    PQclear(result);
    return committed ? OK : ERR_INTERNAL;
}

static enum err tx_once(struct call *c, enum err (*body)(struct call *c, void *arg), void *arg)
{
    c->retry = false;
    TRY(lane_take(c, &c->tx));
    enum err err = tx_say(c, "BEGIN");
    if (err == OK)
        err = body(c, arg);
    if (err == OK && c->before_commit)
        err = c->before_commit(c);
    if (err == OK)
        err = tx_commit(c);
    else
        c->tx->poisoned = true;
    lane_give(c->loop->db, c->tx);
    c->tx = NULL;
    return err;
}

enum err db_tx(struct call *c, enum err (*body)(struct call *c, void *arg), void *arg)
{
    if (c->tx)
        return body(c, arg);
    enum err err = OK;
    for (int i = 0; i < TX_TRIES; i++) {
        err = tx_once(c, body, arg);
        if (err == OK || !c->retry)
            return err;
    }
    return err;
}

enum err db_savepoint(struct call *c)
{
    return tx_say(c, "SAVEPOINT call");
}

enum err db_undo_to_savepoint(struct call *c)
{
    return tx_say(c, "ROLLBACK TO SAVEPOINT call");
}

void db_step_begin(struct call *c, struct db_step *step)
{
    *step = (struct db_step){ c->arena, c->rows };
    c->arena = (struct arena){ 0 };
}

void db_step_end(struct call *c, struct db_step *step)
{
    while (c->rows != step->rows)
        rows_release(c, c->rows);
    arena_release(&c->arena);
    c->arena = step->arena;
}

bool db_call_end(struct call *c)
{
    bool open = c->tx;
    if (c->op) { /* only when the service stops: its result has nobody to go to */
        c->op->done = NULL;
        c->op = NULL;
    }
    if (open) {
        c->tx->poisoned = true;
        lane_give(c->loop->db, c->tx);
        c->tx = NULL;
    }
    while (c->rows)
        rows_release(c, c->rows);
    return open;
}

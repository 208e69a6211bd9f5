/* Statements and transactions of tasks. */
#include "db/db.h"

#include <string.h>

#include "db/lanes.h"
#include "db/rows.h"
#include "server/log.h"

enum { TX_TRIES = 4 };

/* ---- one statement ---- */

static bool op_give_up(struct op *op, enum err *why, bool even_writes)
{
    if (op->writes && op->sent) {
        if (!even_writes)
            return false;
        *why = ERR_OUTCOME_UNKNOWN;
    }
    op->done = NULL; /* the statement continues, its result is dropped */
    if (op->sent)
        conn_abandon(op);
    return true;
}

/* A coroutine that waits for a result. */
struct awaited {
    struct task_wait wait;
    struct op *op;
    struct conn *conn; /* leased; NULL: a shared connection of the lane */
    struct arena *arena;
    struct rows *rows;
    PGresult *result; /* of a plain command */
};

static bool awaited_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    struct awaited *a = container_of(w, struct awaited, wait);
    if (!op_give_up(a->op, why, even_writes))
        return false;
    if (a->conn)
        a->conn->poisoned = true;
    return true;
}

/* Sets the detail of an error that only the database knows the reason of. */
static void explain(struct task *t, const struct op *op, enum err err)
{
    if (err != OK && op->detail && t->problem)
        (void)problem_set(t->problem, err, "%s", op->detail);
}

/* The same for a statement that found no connection of its lane. */
static enum err explain_lane(struct task *t, enum lane lane, enum err err)
{
    enum hosts_cause cause = lanes_cause(t->loop->db, lane);
    if (err == ERR_DATABASE_UNAVAILABLE && cause > CAUSE_NOT_YET && t->problem)
        (void)problem_set(t->problem, err, "%s", hosts_cause_text(cause));
    return err;
}

static void awaited_done(struct op *op, PGresult *result, enum err err)
{
    struct awaited *a = op->user;
    a->wait.task->db.retry = op->retryable;
    explain(a->wait.task, op, err);
    if (err == OK && op->statement)
        a->rows = rows_from_result(a->arena, op, result);
    else
        a->result = result;
    task_wake(&a->wait, err);
}

/* Sends on a->conn (NULL: the statement's lane) and waits for the result. */
static enum err await(struct task *t, struct awaited *a)
{
    struct op *op = a->op;
    const enum lane op_lane = a->conn ? LANE_SLOW : op->statement->lane;
    op->done = awaited_done;
    op->user = a;
    op->separate = a->conn;
    op->alone = a->conn || op->writes;
    a->wait.give_up = awaited_give_up;
    t->db.retry = false;
    enum err err = a->conn ? conn_send(a->conn, op) : lanes_send(t->loop->db, op);
    if (err != OK) {
        lanes_op_free(t->loop->db, op);
        return a->conn ? err : explain_lane(t, op_lane, err);
    }
    return task_wait(t, &a->wait);
}

static enum err acquire(struct task *t, struct conn **conn)
{
    enum err err = lanes_acquire(t, conn);
    return err == OK ? OK : explain_lane(t, LANE_SLOW, err);
}

enum err db_values(struct task *t, const struct statement *st, const char *const *values, struct arena *arena,
                   struct rows **rows)
{
    TRY(task_can_wait(t));
    struct awaited a = { .conn = t->db.tx, .arena = arena ? arena : t->arena };
    if (!a.conn && st->lane == LANE_SLOW)
        TRY(acquire(t, &a.conn));
    a.op = lanes_op_new(t->loop->db);
    a.op->statement = st;
    a.op->values = values;
    a.op->writes = !t->db.tx && st->lane == LANE_WRITE; /* in a transaction only COMMIT decides */
    enum err err = await(t, &a);
    if (a.conn && a.conn != t->db.tx)
        lanes_release(t->loop->db, a.conn);
    *rows = a.rows;
    return err;
}

static bool request_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    return op_give_up(container_of(w, struct db_request, wait)->op, why, even_writes);
}

static void request_woken(struct task_wait *w)
{
    struct db_request *r = container_of(w, struct db_request, wait);
    r->done(r, w->why);
}

static void request_done(struct op *op, PGresult *result, enum err err)
{
    struct db_request *r = op->user;
    r->rows = err == OK ? rows_from_result(r->wait.task->arena, op, result) : NULL;
    explain(r->wait.task, op, err);
    task_wake(&r->wait, err);
}

enum err db_send(struct task *t, struct db_request *r, const struct statement *st, const char *const *values)
{
    if (st->lane == LANE_SLOW) {
        log_event(LOG_ERROR, "slow_without_coroutine", "statement=%s request_id=%s", st->name, t->id);
        return ERR_INTERNAL;
    }
    if (t->over)
        return t->over;
    struct op *op = lanes_op_new(t->loop->db);
    op->statement = st;
    op->values = values;
    op->done = request_done;
    op->user = r;
    op->writes = op->alone = st->lane == LANE_WRITE;
    r->op = op;
    r->wait.give_up = request_give_up;
    r->wait.woken = request_woken;
    enum err err = lanes_send(t->loop->db, op);
    if (err == OK)
        task_expect(t, &r->wait);
    else
        lanes_op_free(t->loop->db, op);
    return explain_lane(t, st->lane, err);
}

/* A write that nobody waits for, with its own copy of the values. */
struct posted {
    struct arena arena;
};

static void posted_done(struct op *op, PGresult *result, enum err err)
{
    struct arena arena = ((struct posted *)op->user)->arena;
    if (err == OK)
        PQclear(result);
    arena_release(&arena);
}

void db_post(struct task *t, const struct statement *st, const char *const *values)
{
    struct arena arena = { 0 };
    struct op *op = lanes_op_new(t->loop->db);
    struct posted *p = arena_alloc(&arena, sizeof *p);
    const char **copies = arena_alloc(&arena, (size_t)(st->param_count + 1) * sizeof *copies);
    for (int i = 0; i < st->param_count; i++)
        copies[i] = values[i] ? arena_text(&arena, values[i]) : NULL;
    op->statement = st;
    op->values = copies;
    op->done = posted_done;
    op->user = p;
    op->writes = op->alone = true;
    p->arena = arena;
    if (lanes_send(t->loop->db, op) == OK)
        return;
    lanes_op_free(t->loop->db, op);
    arena_release(&arena);
}

/* ---- transactions ---- */

/* Sends without waiting: if it fails, the statements after it fail too. */
static enum err tx_send(struct task *t, const char *sql)
{
    TRY(task_can_wait(t));
    struct op *op = lanes_op_new(t->loop->db);
    op->plain = sql;
    enum err err = conn_send(t->db.tx, op);
    if (err != OK)
        lanes_op_free(t->loop->db, op);
    return err;
}

static enum err tx_commit(struct task *t)
{
    struct awaited a = { .conn = t->db.tx, .op = lanes_op_new(t->loop->db) };
    a.op->plain = "COMMIT";
    a.op->writes = true;
    TRY(await(t, &a));
    bool committed =
        strcmp(PQcmdStatus(a.result), "COMMIT") == 0; /* an aborted transaction reports ROLLBACK */
    PQclear(a.result);
    return committed ? OK : ERR_INTERNAL;
}

/* Waits, so that a client that reads the reply and asks again finds the locks released. */
static void tx_rollback(struct task *t)
{
    const struct problem problem = *t->problem;
    const bool retry = t->db.retry;
    struct awaited a = { .conn = t->db.tx };
    t->db.tx->poisoned = true; /* if this cannot wait, the next lease begins with the rollback */
    if (task_can_wait(t) != OK)
        return;
    a.op = lanes_op_new(t->loop->db);
    a.op->plain = "ROLLBACK";
    if (await(t, &a) == OK) {
        t->db.tx->poisoned = false;
        PQclear(a.result);
    }
    t->db.retry = retry;
    *t->problem = problem;
}

static void tx_end(struct task *t)
{
    struct conn *conn = t->db.tx;
    t->db.tx = NULL;
    lanes_release(t->loop->db, conn);
}

static enum err tx_once(struct task *t, enum err (*fn)(void *arg), void *arg)
{
    t->db.retry = false;
    TRY(acquire(t, &t->db.tx));
    enum err err = tx_send(t, "BEGIN");
    if (err == OK)
        err = fn(arg);
    if (err == OK)
        err = task_can_wait(t); /* fn may have passed over that its time was up */
    if (err == OK)
        err = tx_commit(t);
    else
        tx_rollback(t);
    tx_end(t);
    return err;
}

enum err db_tx(struct task *t, enum err (*fn)(void *arg), void *arg)
{
    if (t->db.tx)
        return fn(arg);
    TRY(task_can_wait(t));
    enum err err = OK;
    for (int i = 0; i < TX_TRIES; i++) {
        err = tx_once(t, fn, arg);
        if (err == OK || !t->db.retry)
            return err;
    }
    return err;
}

bool db_in_tx(const struct task *t)
{
    return t->db.tx;
}

bool db_is_retryable(const struct task *t)
{
    return t->db.retry;
}

enum err db_savepoint(struct task *t)
{
    return tx_send(t, "SAVEPOINT call");
}

enum err db_rollback_to_savepoint(struct task *t)
{
    return tx_send(t, "ROLLBACK TO SAVEPOINT call");
}

bool db_task_end(struct task *t)
{
    if (!t->db.tx)
        return false;
    t->db.tx->poisoned = true;
    tx_end(t);
    return true;
}

void db_stats(const struct db *db, struct db_stats *out)
{
    *out = (struct db_stats){ .reconnects = (int64_t)db->reconnects, .lost = (int64_t)db->lost_ops };
    const struct {
        const struct conn *conns;
        int count;
    } lanes[LANES] = { { &db->read, 1 }, { db->write, db->write_count }, { db->slow, db->slow_count } };
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < lanes[lane].count; i++) {
            out->ready[lane] += lanes[lane].conns[i].state == CONN_READY;
            out->in_flight[lane] += lanes[lane].conns[i].in_flight + lanes[lane].conns[i].queued;
        }
    for (const struct lease *l = db->waiting; l; l = l->next)
        out->waiting++;
}

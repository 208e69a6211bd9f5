/* What a connection receives: the results that the server owes, in their order. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/log.h"

struct owed conn_unowe(struct conn *c)
{
    struct owed o = c->owed[c->owed_head];
    c->owed_head = (c->owed_head + 1) % c->owed_cap;
    c->owed_count--;
    return o;
}

void result_release(PGresult *result, int *sharers)
{
    if (sharers && --*sharers)
        return;
    free(sharers);
    PQclear(result);
}

void conn_end_op(struct conn *c, struct op *op, PGresult *result, enum err err)
{
    c->in_flight -= op->sent;
    if (op->done)
        op->done(op, result, err);
    else if (result)
        result_release(result, op->sharers);
    op_free(c->db, op);
}

void conn_fail_ops(struct conn *c, struct op *list, enum err err)
{
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        conn_end_op(c, op, NULL, err);
    }
}

struct op *conn_take_done(struct conn *c)
{
    struct op *op = c->done;
    c->done = NULL;
    c->done_result = NULL;
    return op;
}

/* What an error of the server means to a caller; the first row whose prefix fits. */
static const struct {
    const char *state;
    enum err read, write;
    bool retryable;
    bool stale; /* of the connection: what it prepared no longer fits the tables */
} sqlstates[] = {
    { "57014", ERR_REQUEST_TIMEOUT, ERR_REQUEST_TIMEOUT, false }, /* statement_timeout */
    { "40001", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, true },
    { "40P01", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, true },
    { "0A000", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false,
      true }, /* a column has another type */
    { "26000", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false,
      true },                                                        /* it is no longer prepared */
    { "57P", ERR_DATABASE_UNAVAILABLE, ERR_OUTCOME_UNKNOWN, false }, /* shut down while it ran */
    { "08", ERR_DATABASE_UNAVAILABLE, ERR_OUTCOME_UNKNOWN, false },
    { "53", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false },    /* out of disk, memory, slots */
    { "58", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false },    /* its disk fails */
    { "25006", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false }, /* a standby */
    { "22", ERR_BAD_REQUEST, ERR_BAD_REQUEST,
      false }, /* a value that the columns cannot hold, as in a forged cursor */
    { "", ERR_INTERNAL, ERR_INTERNAL, false },
};

static enum err result_error(struct conn *c, struct op *op, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    size_t i = 0;
    while (state && strncmp(state, sqlstates[i].state, strlen(sqlstates[i].state)) != 0)
        i++;
    if (!state) /* made by libpq itself: the connection broke */
        return op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE;
    op->retryable = sqlstates[i].retryable;
    c->stale |= sqlstates[i].stale;
    enum err e = op->writes ? sqlstates[i].write : sqlstates[i].read;
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (e != ERR_BAD_REQUEST && !op->retryable)
        log_event(e == ERR_INTERNAL ? LOG_ERROR : LOG_WARN, "db_error",
                  "lane=%s statement=%s sqlstate=%s message=\"%s\"", lane_names[c->lane],
                  op->statement ? op->statement->name : op->plain, state, message ? message : "");
    return e;
}

static void preparation_done(struct conn *c, const struct owed *o)
{
    PGresult *r = c->held;
    c->held = NULL;
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        c->prepared[o->statement->index].form[o->together] = false;
    if (PQresultStatus(r) == PGRES_FATAL_ERROR && o->op) {
        o->op->unprepared = result_error(c, o->op, r);
    } else if (PQresultStatus(r) == PGRES_FATAL_ERROR) {
        const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        log_event(LOG_ERROR, "db_prepare", "statement=%s message=\"%s\"", o->statement->name,
                  message ? message : "");
    }
    PQclear(r);
}

/* Each gets its own row of the result, which they share; its first column says whose a row is. */
static void together_done(struct conn *c, struct op *list, PGresult *r)
{
    int rows[MOST_TOGETHER], ops = 0;
    for (const struct op *op = list; op; op = op->next)
        rows[ops++] = -1;
    for (int row = PQntuples(r) - 1; row >= 0; row--) {
        int n = atoi(PQgetvalue(r, row, 0));
        assert(n >= 1 && n <= ops);
        rows[n - 1] = row;
    }
    int *sharers = malloc(sizeof *sharers);
    *sharers = ops;
    ops = 0;
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        op->sharers = sharers;
        op->first = rows[ops++];
        op->count = op->first >= 0;
        conn_end_op(c, op, r, OK);
    }
}

/* None of them was done, and none is to blame for sure: each is sent alone. */
static void not_together(struct conn *c, struct op *list)
{
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        op->unprepared = OK; /* which was said of the other form */
        op->next = c->again;
        c->again = op;
    }
}

static void statement_done(struct conn *c, struct op *op)
{
    PGresult *r = c->held;
    c->held = NULL;
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        if (op->writes) { /* done, but the server commits when it comes to the sync */
            c->done = op;
            c->done_result = r;
        } else if (op->next) {
            together_done(c, op, r);
        } else {
            conn_end_op(c, op, r, OK);
        }
        return;
    }
    if (op->next) {
        not_together(c, op);
    } else if (status == PGRES_PIPELINE_ABORTED && !op->unprepared && op->done && !op->alone) {
        op->next = c->again; /* another's error: it was not run; send it alone */
        c->again = op;
    } else {
        enum err err = op->unprepared                     ? op->unprepared
                       : status == PGRES_PIPELINE_ABORTED ? ERR_INTERNAL
                                                          : result_error(c, op, r);
        conn_end_op(c, op, NULL, err);
    }
    PQclear(r);
}

static void committed(struct conn *c)
{
    PGresult *r = c->done_result;
    conn_end_op(c, conn_take_done(c), r, OK);
}

/* An error where only a sync was owed: what was done before it is rolled back. */
static void commit_failed(struct conn *c)
{
    PGresult *r = c->held;
    c->held = NULL;
    if (c->done) {
        PQclear(c->done_result);
        struct op *op = conn_take_done(c);
        conn_end_op(c, op, NULL, result_error(c, op, r));
    }
    PQclear(r);
}

static void send_again(struct conn *c)
{
    struct op *list = c->again, *next;
    c->again = NULL;
    for (struct op *op = list; op; op = next) {
        next = op->next;
        op->alone = true;
        c->in_flight--;
        op->sent = false;
        enum err err = op->done ? conn_send(c, op) : ERR_DATABASE_UNAVAILABLE;
        if (err != OK)
            conn_end_op(c, op, NULL, err);
    }
}

void conn_receive(struct conn *c)
{
    if (!PQconsumeInput(c->pg)) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    c->active_us = c->db->loop->now_us;
    while (c->state == CONN_READY && c->owed_count && !PQisBusy(c->pg)) {
        PGresult *r = PQgetResult(c->pg);
        if (r && PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
            PQclear(r);
            assert(c->owed[c->owed_head].kind == OWED_SYNC);
            conn_unowe(c);
            c->batches--;
            if (c->done)
                committed(c);
        } else if (r) {
            if (c->held)
                PQclear(c->held);
            c->held = r;
        } else if (c->held && c->owed[c->owed_head].kind == OWED_SYNC) {
            commit_failed(c);
        } else if (c->held) {
            struct owed o = conn_unowe(c);
            if (o.kind == OWED_PREPARE)
                preparation_done(c, &o);
            else
                statement_done(c, o.op);
        } else {
            conn_lost(c, PQerrorMessage(c->pg)); /* nothing where something was owed */
            return;
        }
    }
    if (c->state == CONN_READY && PQstatus(c->pg) == CONNECTION_BAD)
        conn_lost(c, PQerrorMessage(c->pg));
    if (c->again)
        send_again(c);
    if (c->lane != LANE_READ)
        conn_send_queued(c);
    if (c->stale && c->state == CONN_READY && !c->owed_count)
        conn_lost(c, "the tables have changed: it is made anew");
}

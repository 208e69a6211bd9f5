/* What a connection sends: statements alone or together, and the syncs between them. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/base/array_text.h"
#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/config.h"

/* Reads that come while so many batches are under way wait for the next one: the fewer batches, the fewer
 * switches between the service and the server. One is being answered while the other is being read. */
enum { MOST_BATCHES = 2 };

/* How many statements of a connection may be under way; the slow lane has one user at a time. */
static const int window[] = { [LANE_READ] = 2 * MOST_TOGETHER, [LANE_WRITE] = 4, [LANE_SLOW] = 1000 };

/* ---- what the server owes ---- */

void conn_owe(struct conn *c, struct owed o)
{
    if (c->owed_count == c->owed_cap) {
        unsigned cap = c->owed_cap ? c->owed_cap * 2 : 64;
        struct owed *ring = calloc(cap, sizeof *ring);
        for (unsigned i = 0; i < c->owed_count; i++)
            ring[i] = c->owed[(c->owed_head + i) % c->owed_cap];
        free(c->owed);
        c->owed = ring;
        c->owed_cap = cap;
        c->owed_head = 0;
    }
    if (!c->owed_count) {
        c->active_us = c->db->loop->now_us;
        if (c->state == CONN_READY && !c->timer.armed)
            loop_timer(c->db->loop, &c->timer,
                       c->db->loop->config->request_timeout_ms * 1000 + ANSWER_GRACE_US);
    }
    c->owed[(c->owed_head + c->owed_count++) % c->owed_cap] = o;
}

bool conn_prepare(struct conn *c, struct op *op, const struct statement *st, bool together)
{
    bool *prepared = &c->prepared[st->index].form[together];
    if (*prepared)
        return true;
    *prepared = PQsendPrepare(c->pg, together ? st->together_name : st->name,
                              together ? st->together : st->sql, 0, NULL);
    if (*prepared)
        conn_owe(c, (struct owed){ OWED_PREPARE, op, st, together });
    return *prepared;
}

/* ---- what waits ---- */

static void enqueue(struct conn *c, struct op *op)
{
    op->next = NULL;
    if (c->queue)
        c->queue_last->next = op;
    else
        c->queue = op;
    c->queue_last = op;
    c->queued++;
}

struct op *conn_dequeue(struct conn *c)
{
    struct op *op = c->queue;
    c->queue = op->next;
    c->queued--;
    op->next = NULL;
    return op;
}

/* ---- sending ---- */

static void sync_now(struct conn *c)
{
    if (!PQpipelineSync(c->pg))
        return; /* the socket is gone; the next read says so */
    conn_owe(c, (struct owed){ OWED_SYNC, NULL, NULL });
    c->batches++;
    c->unsynced = false;
    c->unflushed = true;
}

/* One execution for all of the list: each parameter is the array of their values. */
static bool send_together(struct conn *c, const struct op *list)
{
    const struct statement *st = list->statement;
    struct arena arena = { 0 };
    const char **arrays = arena_alloc(&arena, (size_t)st->param_count * sizeof *arrays);
    for (int i = 0; i < st->param_count; i++) {
        struct buf out = { .arena = &arena };
        for (const struct op *op = list; op; op = op->next)
            array_text_add(&out, op->values[i]);
        arrays[i] = array_text_end(&out);
    }
    bool sent = PQsendQueryPrepared(c->pg, st->together_name, st->param_count, arrays, NULL, NULL, 0);
    arena_release(&arena);
    return sent;
}

static bool send_op(struct conn *c, struct op *op)
{
    const struct statement *st = op->statement;
    if (!st) {
        if (!PQsendQueryParams(c->pg, op->plain, 0, NULL, NULL, NULL, NULL, 0))
            return false;
    } else if (op->next) {
        if (!conn_prepare(c, op, st, true) || !send_together(c, op))
            return false;
    } else if (st->lane == LANE_SLOW) {
        /* Planned for its values each time. What is prepared may get a plan for any values: to sort a million
         * rows for a page that an index has in order. */
        if (!PQsendQueryParams(c->pg, st->sql, st->param_count, NULL, op->values, NULL, NULL, 0))
            return false;
    } else {
        if (!conn_prepare(c, op, st, false))
            return false;
        if (!PQsendQueryPrepared(c->pg, st->name, st->param_count, op->values, NULL, NULL, 0))
            return false;
    }
    conn_owe(c, (struct owed){ OWED_RESULT, op, st });
    c->unsynced = c->unflushed = true;
    return true;
}

bool conn_usable(const struct conn *c)
{
    return c->state == CONN_READY && !c->stale;
}

static enum err transmit(struct conn *c, struct op *op)
{
    if (op->alone && c->unsynced)
        sync_now(c);
    if (!send_op(c, op)) {
        conn_lost(c, PQerrorMessage(c->pg));
        return op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE;
    }
    for (struct op *each = op; each; each = each->next) {
        each->sent = true;
        c->in_flight++;
    }
    if (op->alone)
        sync_now(c);
    return OK;
}

enum err conn_send(struct conn *c, struct op *op)
{
    if (!conn_usable(c))
        return ERR_DATABASE_UNAVAILABLE;
    if (c->lane != LANE_READ && c->in_flight < window[c->lane])
        return transmit(c, op);
    enqueue(c, op);
    return OK;
}

/* Takes those behind `op` in the queue that can be executed together with it. */
static void gather(struct conn *c, struct op *op)
{
    struct op **at = &c->queue, *last = op;
    c->queue_last = NULL;
    for (int count = 1; *at;) {
        struct op *other = *at;
        if (count < MOST_TOGETHER && other->statement == op->statement && !other->alone && other->done) {
            *at = other->next;
            c->queued--;
            other->next = NULL;
            last = last->next = other;
            count++;
        } else {
            c->queue_last = other;
            at = &other->next;
        }
    }
}

void conn_send_queued(struct conn *c)
{
    while (c->queue && c->in_flight < window[c->lane] && conn_usable(c)) {
        struct op *op = conn_dequeue(c);
        if (!op->done) {
            conn_end_op(c, op, NULL, OK);
            continue;
        }
        if (op->statement && op->statement->together && !op->alone)
            gather(c, op);
        enum err err = transmit(c, op);
        if (err != OK)
            conn_fail_ops(c, op, err);
    }
}

void conn_flush(struct conn *c)
{
    if (c->state != CONN_READY)
        return;
    if (c->lane == LANE_READ && c->batches < MOST_BATCHES)
        conn_send_queued(c);
    if (c->unsynced)
        sync_now(c);
    if (!c->unflushed)
        return;
    int left = PQflush(c->pg);
    if (left < 0) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    c->unflushed = left > 0;
    loop_watch(c->db->loop, &c->watch, left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

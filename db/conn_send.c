/* The sending side of a connection: single statements, batches of reads, and the syncs between them. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/base/array_text.h"
#include "core/base/memory.h"
#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/config.h"

/* Reads wait while this many batches are in flight. Fewer, larger batches mean fewer context switches between
 * the service and the server. With two, the server runs one while we read the results of the other. */
enum { BATCHES_MAX = 2 };

/* Statements that may be in flight on a connection. A slow connection serves one request at a time. */
static const int window[] = { [LANE_READ] = 2 * TOGETHER_MAX, [LANE_WRITE] = 4, [LANE_SLOW] = 1000 };

/* ---- pending responses ---- */

void conn_push_pending(struct conn *c, struct pending o)
{
    if (c->pending_count == c->pending_cap) {
        unsigned cap = c->pending_cap ? c->pending_cap * 2 : 64;
        struct pending *ring = memory_zero(cap, sizeof *ring);
        for (unsigned i = 0; i < c->pending_count; i++)
            ring[i] = c->pending[(c->pending_head + i) % c->pending_cap];
        free(c->pending);
        c->pending = ring;
        c->pending_cap = cap;
        c->pending_head = 0;
    }
    if (!c->pending_count) {
        c->active_us = c->db->loop->now_us;
        if (c->state == CONN_READY && !c->timer.armed)
            loop_timer(c->db->loop, &c->timer,
                       c->db->loop->config->request_timeout_ms * 1000 + ANSWER_GRACE_US);
    }
    c->pending[(c->pending_head + c->pending_count++) % c->pending_cap] = o;
}

bool conn_prepare(struct conn *c, struct op *op, const struct statement *st, bool together)
{
    bool *prepared = &c->prepared[st->index].form[together];
    if (*prepared)
        return true;
    *prepared = PQsendPrepare(c->pg, together ? st->together_name : st->name,
                              together ? st->together : st->sql, 0, NULL);
    if (*prepared)
        conn_push_pending(c, (struct pending){ PENDING_PREPARE, op, st, together });
    return *prepared;
}

/* ---- the queue ---- */

void conn_enqueue(struct conn *c, struct op *op)
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
        return; /* the socket is gone; the next read reports it */
    conn_push_pending(c, (struct pending){ PENDING_SYNC, NULL, NULL });
    c->batches++;
    c->unsynced = false;
    c->unflushed = true;
}

/* Runs the operations as one execution: each parameter is the array of their values. */
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
        /* Not prepared, so that it is planned for its values. A generic plan might sort a million rows for
         * a page that an index has in order. */
        if (!PQsendQueryParams(c->pg, st->sql, st->param_count, NULL, op->values, NULL, NULL, 0))
            return false;
    } else {
        if (!conn_prepare(c, op, st, false))
            return false;
        if (!PQsendQueryPrepared(c->pg, st->name, st->param_count, op->values, NULL, NULL, 0))
            return false;
    }
    conn_push_pending(c, (struct pending){ PENDING_RESULT, op, st });
    c->unsynced = c->unflushed = true;
    return true;
}

bool conn_usable(const struct conn *c)
{
    return c->state == CONN_READY && !c->leaving && !c->lease_lost;
}

void conn_end_batch(struct conn *c)
{
    if (c->unsynced && c->state == CONN_READY)
        sync_now(c);
}

bool conn_is_grouped(const struct op *op)
{
    return op->writes && !op->separate && op->statement && op->statement->together;
}

void conn_set_sent(struct conn *c, struct op *op, bool sent)
{
    const int change = (int)sent - (int)op->sent;
    c->in_flight += change;
    c->grouped += conn_is_grouped(op) ? change : 0;
    c->abandoned -= op->abandoned;
    op->abandoned = false;
    op->sent = sent;
    op->conn = sent ? c : NULL;
}

static bool transmit_op(struct conn *c, struct op *op)
{
    if (op->alone && c->unsynced)
        sync_now(c);
    if (!send_op(c, op))
        return false;
    for (struct op *each = op; each; each = each->next)
        conn_set_sent(c, each, true);
    if (op->alone)
        sync_now(c);
    return true;
}

static enum err transmit(struct conn *c, struct op *op)
{
    if (transmit_op(c, op))
        return OK;
    conn_broken(c);
    return op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE;
}

bool conn_send_plain(struct conn *c, const char *sql, void (*done)(struct op *, PGresult *, enum err))
{
    struct op *op = lanes_op_new(c->db);
    op->plain = sql;
    op->alone = true;
    op->done = done;
    op->user = c;
    if (transmit_op(c, op))
        return true;
    lanes_op_free(c->db, op);
    return false;
}

/* Whether the window has room for the operation. Nothing joins the statements on a connection for writes that
 * is held up by one that nobody waits for. */
static bool has_room(const struct conn *c, const struct op *op)
{
    return c->in_flight < window[c->lane] && !c->preparing && (c->lane != LANE_WRITE || !c->abandoned) &&
           !(c->grouped && conn_is_grouped(op));
}

enum err conn_send(struct conn *c, struct op *op)
{
    if (!conn_usable(c))
        return ERR_DATABASE_UNAVAILABLE;
    if (c->lane != LANE_READ && has_room(c, op))
        return transmit(c, op);
    conn_enqueue(c, op);
    return OK;
}

/* Moves the queued operations that can be executed together with `op` to its list. */
static void gather(struct conn *c, struct op *op)
{
    struct op **at = &c->queue, *last = op;
    c->queue_last = NULL;
    for (int count = 1; *at;) {
        struct op *other = *at;
        if (count < TOGETHER_MAX && other->statement == op->statement && !other->separate && other->done) {
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
    while (c->queue && has_room(c, c->queue) && conn_usable(c)) {
        struct op *op = conn_dequeue(c);
        if (!op->done) {
            conn_end_op(c, op, NULL, OK);
            continue;
        }
        if (op->statement && op->statement->together && !op->separate)
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
    if (c->lane == LANE_READ && c->batches < BATCHES_MAX)
        conn_send_queued(c);
    if (c->unsynced)
        sync_now(c);
    if (!c->unflushed)
        return;
    int left = PQflush(c->pg);
    if (left < 0) {
        conn_broken(c);
        return;
    }
    c->unflushed = left > 0;
    loop_watch(c->db->loop, &c->watch, left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* One pipelined connection to PostgreSQL: its states, losing it, reconnecting. */
#include "db/conn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/base/memory.h"
#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/config.h"

enum {
    BACKOFF_FIRST_US = 50 * 1000,
    BACKOFF_MAX_US = 2 * 1000 * 1000,
};

const char *const conn_lane_names[] = { [LANE_READ] = "read", [LANE_WRITE] = "write", [LANE_SLOW] = "slow" };

static void conn_ready(struct watch *w, uint32_t events);
static void conn_timer(struct timer *t);

void conn_init(struct conn *c, struct db *db, enum lane lane)
{
    c->db = db;
    c->lane = lane;
    c->watch.fd = -1;
    c->watch.ready = conn_ready;
    c->timer.fire = conn_timer;
    c->cause = CAUSE_NOT_YET;
    c->prepared = memory_zero((size_t)statements_count, sizeof *c->prepared);
    hosts_begin(db->hosts, &c->walk);
}

/* A connection may be lost in any state; it becomes ready only after connecting and configuring. */
void conn_set_state(struct conn *c, enum conn_state state)
{
    assert(state == CONN_DOWN || (state == CONN_CONNECTING && c->state == CONN_DOWN) ||
           (state == CONN_CONFIGURING && c->state == CONN_CONNECTING) ||
           (state == CONN_READY && c->state == CONN_CONFIGURING));
    c->state = state;
    c->db->changed = true;
}

/* ---- losing the connection ---- */

static int64_t backoff_us(int rounds)
{
    int64_t us = BACKOFF_FIRST_US;
    for (int i = 1; i < rounds && us < BACKOFF_MAX_US; i++)
        us *= 2;
    if (us > BACKOFF_MAX_US)
        us = BACKOFF_MAX_US;
    return us / 2 + random() % (us / 2 + 1); /* jitter: all connections were lost at the same moment */
}

/* Closes the connection and fails its operations. `retry_us`: delay before the reconnect; -1: never. The
 * timer is set first because a callback may ask for this connection. */
static void conn_drop(struct conn *c, int64_t retry_us)
{
    conn_unwatch(c);
    loop_timer_off(c->db->loop, &c->timer);
    if (c->held)
        PQclear(c->held);
    c->held = NULL;
    if (c->pg)
        PQfinish(c->pg);
    c->pg = NULL;
    conn_set_state(c, CONN_DOWN);
    c->unsynced = c->unflushed = c->read_only = c->preparing = false;
    c->leaving = NULL;
    c->lease_lost = c->busy;
    c->batches = 0;
    memset(c->prepared, 0, (size_t)statements_count * sizeof *c->prepared);
    if (retry_us >= 0)
        loop_timer(c->db->loop, &c->timer, retry_us);
    if (c->uncommitted) {
        PQclear(c->uncommitted_result);
        c->db->lost_ops++;
        conn_fail_ops(c, conn_take_uncommitted(c), ERR_OUTCOME_UNKNOWN);
    }
    struct op *resend = c->resend;
    c->resend = NULL;
    conn_fail_ops(c, resend, ERR_DATABASE_UNAVAILABLE);
    while (c->queue)
        conn_end_op(c, conn_dequeue(c), NULL, ERR_DATABASE_UNAVAILABLE);
    while (c->pending_count) {
        struct pending o = conn_pop_pending(c);
        if (o.kind == PENDING_RESULT && o.op) {
            c->db->lost_ops++;
            conn_fail_ops(c, o.op, o.op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE);
        }
    }
}

/* Chooses the server of the next attempt. Returns the delay before it: none while servers of this round are
 * left. */
static int64_t next_attempt_us(struct conn *c)
{
    if (c->state == CONN_READY) {
        if (c->cause == CAUSE_READ_ONLY)
            hosts_leave(c->db->hosts, &c->walk);
        hosts_begin(c->db->hosts, &c->walk);
        c->rotating = false;
        return backoff_us(1);
    }
    c->rotating = hosts_next(c->db->hosts, &c->walk);
    if (c->rotating)
        return 0;
    c->rounds++;
    return backoff_us(c->rounds);
}

void conn_lost(struct conn *c, enum hosts_cause cause, const char *why)
{
    if (c->db->stopping) {
        conn_drop(c, -1);
        return;
    }
    c->cause = cause;
    c->failures++;
    /* Log rounds 1, 2, 4, 8, ... so that an outage does not flood the log. */
    if (((c->rounds + 1) & c->rounds) == 0)
        conn_log_lost(c, why);
    conn_drop(c, next_attempt_us(c));
    if (c->lane == LANE_SLOW)
        lanes_slow_changed(c->db);
}

void conn_farewell(struct conn *c, const char *text)
{
    char line[HOSTS_REASON_SIZE];
    if (hosts_cause_of(text) == CAUSE_STARTING)
        snprintf(c->farewell, sizeof c->farewell, "%.*s", (int)sizeof c->farewell - 1,
                 hosts_reason(text, line));
}

void conn_broken(struct conn *c)
{
    char all[2 * HOSTS_REASON_SIZE];
    /* A copy: the text ends with c->pg. */
    snprintf(all, sizeof all, "%s\n%s", c->farewell, c->pg ? PQerrorMessage(c->pg) : "out of memory");
    conn_lost(c, hosts_cause_of(all), all);
}

void conn_leave(struct conn *c, enum hosts_cause cause, const char *why)
{
    c->leaving = why;
    c->leaving_cause = cause;
    if (c->state == CONN_READY && !c->pending_count)
        conn_lost(c, cause, why);
}

void conn_close(struct conn *c)
{
    conn_drop(c, -1);
    free(c->pending);
    free(c->prepared);
}

/* ---- statements that nobody waits for ---- */

/* Whether no request waits for any of the statements in flight. Plain ones are the service's own. */
static bool is_abandoned(const struct conn *c)
{
    if (c->lane != LANE_WRITE || !c->abandoned || c->uncommitted || c->resend)
        return false;
    for (unsigned i = 0; i < c->pending_count; i++) {
        const struct pending *o = &c->pending[(c->pending_head + i) % c->pending_cap];
        for (const struct op *op = o->kind == PENDING_RESULT ? o->op : NULL; op; op = op->next)
            if (op->done && op->statement)
                return false;
    }
    return true;
}

void conn_abandon(struct op *op)
{
    struct conn *c = op->conn;
    op->abandoned = true;
    c->abandoned++;
    conn_watch_abandoned(c);
}

/* A callback must not close the connection, so the timer does. */
void conn_watch_abandoned(struct conn *c)
{
    if (c->state == CONN_READY && is_abandoned(c))
        loop_timer(c->db->loop, &c->timer, 1);
}

/* What was queued has not run. It goes to other connections, or waits until this one is up again. */
static void leave_abandoned(struct conn *c)
{
    struct op *queue = c->queue, *next;
    c->queue = c->queue_last = NULL;
    c->queued = 0;
    conn_lost(c, CAUSE_NOT_YET, "it was held up by statements that nobody waits for");
    for (struct op *op = queue; op; op = next) {
        next = op->next;
        if (!op->done || !op->statement)
            conn_end_op(c, op, NULL, ERR_DATABASE_UNAVAILABLE);
        else if (lanes_send(c->db, op) != OK)
            conn_enqueue(c, op);
    }
}

/* ---- the timer and the socket ---- */

static void check_silence(struct conn *c)
{
    struct loop *l = c->db->loop;
    const bool abandoned = is_abandoned(c);
    const int64_t limit =
        abandoned ? ABANDONED_GRACE_US : l->config->request_timeout_ms * 1000 + ANSWER_GRACE_US;
    const int64_t silent = l->now_us - c->active_us;
    if (silent < limit)
        loop_timer(l, &c->timer, limit - silent);
    else if (abandoned)
        leave_abandoned(c);
    else
        conn_lost(c, CAUSE_SILENT, "the server does not answer");
}

static void conn_timer(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    if (c->state == CONN_DOWN)
        conn_connect(c);
    else if (c->state != CONN_READY)
        conn_lost(c, CAUSE_SILENT, "no answer within the time-out for connecting");
    else if (c->pending_count)
        check_silence(c);
}

static void conn_ready(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    if (c->state != CONN_READY) {
        conn_continue(c);
        return;
    }
    if (events & EPOLLOUT)
        conn_flush(c);
    if (c->state == CONN_READY && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        conn_receive(c);
}

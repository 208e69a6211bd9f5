/* The state machine of an exchange: its states, the effect of each, and its timer. */
#include "server/http/exchange.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/http/clients.h"
#include "server/http/http_internal.h"
#include "server/http/spool.h"

enum {
    /* After its time limit, a write gets this long: the database's own time-out ends it. */
    WRITE_GRACE_US = 2 * 1000 * 1000,
    SWEEP_US = 500 * 1000,
};

/* Which time limit applies. */
enum clock { CLOCK_NONE, CLOCK_BODY, CLOCK_WORK };

#define TO(state) (1u << EXCHANGE_##state)

static const struct {
    bool listed;    /* in flight */
    bool works;     /* counts towards max_in_flight */
    bool polled;    /* the daemon polls for the reply */
    bool suspended; /* the connection is suspended in the daemon */
    bool needs_run; /* the daemon must run in this turn of the loop */
    enum clock clock;
    unsigned next; /* bits of the states that may follow */
} states[EXCHANGE_STATES] = {
    [EXCHANGE_HEADERS] = { .next = TO(BODY) | TO(GONE) },
    [EXCHANGE_BODY] = { .listed = true,
                        .clock = CLOCK_BODY,
                        .next = TO(CUT) | TO(IDENTIFYING) | TO(WORKING) | TO(ANSWERED) | TO(GONE) },
    [EXCHANGE_CUT] = { .listed = true, .next = TO(GONE) },
    [EXCHANGE_IDENTIFYING] = { .listed = true,
                               .suspended = true,
                               .clock = CLOCK_BODY,
                               .next = TO(IDENTIFIED) | TO(ANSWERED) | TO(STOPPED) },
    [EXCHANGE_IDENTIFIED] = { .listed = true,
                              .needs_run = true,
                              .clock = CLOCK_BODY,
                              .next = TO(BODY) | TO(CUT) | TO(GONE) },
    [EXCHANGE_WORKING] = { .listed = true,
                           .works = true,
                           .clock = CLOCK_WORK,
                           .next = TO(POLLED) | TO(SUSPENDED) | TO(ANSWERED) },
    [EXCHANGE_POLLED] = { .listed = true,
                          .works = true,
                          .polled = true,
                          .clock = CLOCK_WORK,
                          .next = TO(SUSPENDED) | TO(ANSWERED) | TO(CLOSED) | TO(GONE) },
    [EXCHANGE_SUSPENDED] = { .listed = true,
                             .works = true,
                             .suspended = true,
                             .clock = CLOCK_WORK,
                             .next = TO(ANSWERED) | TO(STOPPED) },
    [EXCHANGE_ANSWERED] = { .listed = true, .needs_run = true, .next = TO(SENDING) | TO(CLOSED) | TO(GONE) },
    [EXCHANGE_SENDING] = { .listed = true, .needs_run = true, .next = TO(DRAINED) | TO(CLOSED) | TO(GONE) },
    [EXCHANGE_DRAINED] = { .listed = true, .suspended = true, .next = TO(SENDING) | TO(STOPPED) },
    [EXCHANGE_STOPPED] = { .listed = true, .needs_run = true, .next = TO(CLOSED) | TO(GONE) },
    [EXCHANGE_CLOSED] = { .listed = true, .clock = CLOCK_WORK, .next = TO(GONE) },
    [EXCHANGE_GONE] = { 0 },
};

/* ---- effects of a state ---- */

static void list(struct exchange *x)
{
    struct http *h = x->http;
    x->next = h->first;
    if (h->first)
        h->first->prev = x;
    h->first = x;
    h->in_flight++;
}

static void unlist(struct exchange *x)
{
    *(x->prev ? &x->prev->next : &x->http->first) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->http->in_flight--;
}

/* A coroutine works until it ends, even if it waits for the slow client of a stream. */
static bool counts_as_working(const struct exchange *x)
{
    return states[x->state].works || x->held;
}

static void start_timer(struct exchange *x);

static void on_grace_over(struct timer *t)
{
    struct exchange *x = container_of(t, struct exchange, timer);
    if (!task_cancel(x->task, ERR_REQUEST_TIMEOUT, true))
        loop_timer(x->loop, t, WRITE_GRACE_US); /* it is computing; cancel it when it waits next */
}

void exchange_cut(struct exchange *x, enum err why)
{
    x->reply->error = why;
    exchange_set_state(x, EXCHANGE_CUT);
    peer_cut(x);
}

/* A bulk body may take long, as long as it is not too slow. */
static bool arrives_fast_enough(const struct exchange *x)
{
    const struct config *config = x->loop->config;
    const int64_t bytes = (int64_t)(x->received_bytes - x->timed_bytes);
    return x->limits.bulk && bytes * 1000 >= config->min_body_rate * config->request_timeout_ms;
}

/* What is left of both limits of the work. Statements that each keep their own limit do not add up. */
static int64_t work_left_us(const struct exchange *x)
{
    const int64_t spent = x->loop->now_us - x->timed_us, left = x->limits.work_ms * 1000 - spent,
                  own_left = x->limits.own_ms * 1000 - (spent - task_elsewhere_us(x->task));
    return own_left < left ? own_left : left;
}

static void on_timeout(struct timer *t)
{
    struct exchange *x = container_of(t, struct exchange, timer);
    if (states[x->state].clock == CLOCK_BODY && !states[x->state].suspended) {
        if (arrives_fast_enough(x))
            start_timer(x);
        else
            exchange_cut(x, ERR_BODY_TIMEOUT);
        return;
    }
    const int64_t left = states[x->state].clock == CLOCK_WORK ? work_left_us(x) : 0;
    if (left > 0) {
        loop_timer(x->loop, t, left);
        return;
    }
    if (task_cancel(x->task, ERR_REQUEST_TIMEOUT, false))
        return;
    t->fire = on_grace_over;
    loop_timer(x->loop, t, WRITE_GRACE_US);
}

static void start_timer(struct exchange *x)
{
    x->timed_bytes = x->received_bytes;
    x->timed_us = x->loop->now_us;
    x->timer.fire = on_timeout;
    loop_timer(x->loop, &x->timer, x->loop->config->request_timeout_ms * 1000);
}

/* ---- clients that left ---- */

static void await_sweep(struct http *h);

/* The daemon notices a client that leaves only while it reads or writes, so this ends a suspended connection.
 * A coroutine goes on without it until its time limit: its commit may be what a retry finds. */
static void on_sweep(struct timer *t)
{
    struct http *h = container_of(t, struct http, sweep);
    bool suspended = false;
    for (struct exchange *x = h->first; x; x = x->next) {
        if (!exchange_is_suspended(x))
            continue;
        suspended = true;
        if (peer_left(x))
            exchange_stop(x);
    }
    if (suspended)
        await_sweep(h);
}

static void await_sweep(struct http *h)
{
    h->sweep.fire = on_sweep;
    if (!h->sweep.armed)
        loop_timer(h->loop, &h->sweep, SWEEP_US);
}

void exchange_stop(struct exchange *x)
{
    x->stream.failed = true;
    exchange_set_state(x, EXCHANGE_STOPPED);
}

/* ---- changing the state ---- */

void exchange_set_state(struct exchange *x, enum exchange_state state)
{
    struct http *h = x->http;
    const enum exchange_state old = x->state;
    const bool counted = counts_as_working(x);
    assert(states[old].next & 1u << state);
    x->state = state;
    h->working += counts_as_working(x) - counted;
    h->polled += states[state].polled - states[old].polled;
    h->run_needed |= states[state].needs_run;
    if (states[state].listed && !states[old].listed)
        list(x);
    else if (!states[state].listed && states[old].listed)
        unlist(x);
    if (states[state].clock == CLOCK_NONE)
        loop_timer_off(h->loop, &x->timer);
    else if (states[state].clock != states[old].clock || !x->timer.armed) /* it may have fired */
        start_timer(x);
    if (states[state].suspended && !states[old].suspended) {
        MHD_suspend_connection(x->connection);
        await_sweep(h);
    } else if (!states[state].suspended && states[old].suspended)
        MHD_resume_connection(x->connection);
}

bool exchange_is_suspended(const struct exchange *x)
{
    return states[x->state].suspended;
}

/* ---- create and free ---- */

struct exchange *exchange_new(struct http *h, struct MHD_Connection *connection, const char *target)
{
    struct exchange *x = memory_zero(1, sizeof *x + h->app->call_bytes);
    x->http = h;
    x->loop = h->loop;
    x->connection = connection;
    x->call = x + 1;
    x->start_us = loop_clock_us();
    h->app->open(x);
    x->target = arena_text(x->task->arena, target);
    x->body.arena = x->task->arena;
    return x;
}

static void exchange_free(struct exchange *x)
{
    exchange_set_state(x, EXCHANGE_GONE);
    if (x->spool)
        spool_close(x->spool);
    clients_remove(x->client);
    stream_free(x);
    x->http->app->close(x);
    free(x);
}

void exchange_closed(struct exchange *x)
{
    if (!x->held) {
        exchange_free(x);
        return;
    }
    exchange_set_state(x, EXCHANGE_CLOSED);
    stream_gone(x); /* the coroutine ends, and frees the exchange */
}

void exchange_hold(struct exchange *x)
{
    x->held = true;
}

void exchange_release(struct exchange *x)
{
    const bool counted = counts_as_working(x);
    x->held = false;
    x->http->working += counts_as_working(x) - counted;
    if (x->state == EXCHANGE_CLOSED)
        exchange_free(x);
}

void exchange_answered(struct exchange *x)
{
    if (x->state != EXCHANGE_STOPPED && x->state != EXCHANGE_CLOSED) /* otherwise the client is gone */
        exchange_set_state(x, EXCHANGE_ANSWERED);
}

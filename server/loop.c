/* One event loop: the file descriptors and timers of one thread. */
#include "server/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_A_TURN = 64 };

static int64_t clock_us(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t loop_clock_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t loop_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

bool loop_open(struct loop *l)
{
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->now_us = loop_clock_us();
    memset(l->timers, 0, sizeof l->timers);
    l->timed = 0;
    return l->epoll >= 0;
}

void loop_close(struct loop *l)
{
    close(l->epoll);
}

void loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
    if (events == w->events)
        return;
    int op = !events ? EPOLL_CTL_DEL : w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    struct epoll_event e = { .events = events, .data.ptr = w };
    if (epoll_ctl(l->epoll, op, w->fd, &e) != 0) {
        fprintf(stderr, "daybookd: epoll_ctl: %s\n", strerror(errno));
        abort(); /* a bug: the descriptor was registered twice or closed early */
    }
    w->events = events;
}

void loop_timer_off(struct loop *l, struct timer *t)
{
    if (!t->armed)
        return;
    struct timer_list *list = &l->timers[t->list];
    *(t->prev ? &t->prev->next : &list->first) = t->next;
    *(t->next ? &t->next->prev : &list->last) = t->prev;
    if (!list->first)
        l->timed &= ~(UINT64_C(1) << t->list);
    t->armed = false;
}

/* One list per magnitude of the delay, so that arming a short timer never walks past long ones. */
static int list_of(int64_t delay_us)
{
    int bits = delay_us > 0 ? 64 - __builtin_clzll((unsigned long long)delay_us) : 0;
    return bits < TIMER_LISTS ? bits : TIMER_LISTS - 1;
}

void loop_timer(struct loop *l, struct timer *t, int64_t delay_us)
{
    loop_timer_off(l, t);
    t->at_us = l->now_us + delay_us;
    t->list = list_of(delay_us);
    struct timer_list *list = &l->timers[t->list];
    struct timer *before = list->last;
    while (before && before->at_us > t->at_us)
        before = before->prev;
    t->prev = before;
    t->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = t;
    *(t->next ? &t->next->prev : &list->last) = t;
    l->timed |= UINT64_C(1) << t->list;
    t->armed = true;
}

/* The next timer to fire, or NULL. */
static struct timer *next_timer(const struct loop *l)
{
    struct timer *next = NULL;
    for (uint64_t lists = l->timed; lists; lists &= lists - 1) {
        struct timer *t = l->timers[__builtin_ctzll(lists)].first;
        if (!next || t->at_us < next->at_us)
            next = t;
    }
    return next;
}

static int wait_ms(const struct loop *l, int64_t max_us)
{
    int64_t us = max_us;
    const struct timer *next = next_timer(l);
    if (next) {
        int64_t due = next->at_us - loop_clock_us();
        if (due < 0)
            due = 0;
        if (us < 0 || due < us)
            us = due;
    }
    if (us < 0)
        return -1;
    us = (us + 999) / 1000; /* round up: waking early would spin */
    return us > 60000 ? 60000 : (int)us;
}

void loop_turn(struct loop *l, int64_t max_us)
{
    struct epoll_event events[EVENTS_A_TURN];
    int n = epoll_wait(l->epoll, events, EVENTS_A_TURN, wait_ms(l, max_us));
    l->now_us = loop_clock_us();
    for (int i = 0; i < n; i++) {
        struct watch *w = events[i].data.ptr;
        if (w->events) /* an earlier event of this turn may have removed it */
            w->ready(w, events[i].events);
    }
    for (struct timer *t; (t = next_timer(l)) && t->at_us <= l->now_us;) {
        loop_timer_off(l, t);
        t->fire(t);
    }
}

/* A task: one unit of work on a loop that can wait. A request is worked on by one, and so is a background
 * job. */
#ifndef DAYBOOK_SERVER_TASK_H
#define DAYBOOK_SERVER_TASK_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "server/loop.h"
#include "server/problem.h"

struct coro;
struct conn;
struct task;

/* What a task waits for. Whoever offers something to wait for embeds it. */
struct task_wait {
    struct task *task;
    /* Stops waiting, because of *why, which it may replace; nobody may wake the task afterwards. False: it
     * cannot stop now, because a write is under way whose outcome will be known; with `even_writes` it
     * does. NULL: nothing needs to be undone. */
    bool (*give_up)(struct task_wait *w, enum err *why, bool even_writes);
    /* Called when the waiting is over, for work without a coroutine. NULL: the coroutine goes on. */
    void (*woken)(struct task_wait *w);
    enum err why; /* how the waiting ended */
};

struct task {
    struct loop *loop;
    struct arena *arena;     /* its memory */
    struct problem *problem; /* takes the detail of an error */
    const char *owner;       /* whose data it works on */
    const char *id;          /* for the log: that of its request, or the name of the job */
    struct coro *coro;       /* suspended here; NULL: it runs, or has none */
    struct task_wait *wait;  /* what it waits for; NULL: nothing */
    struct {
        struct conn *tx; /* the connection of its open transaction */
        bool retry;      /* its last statement failed only because of another transaction */
    } db;                /* kept by db/ */
};

/* OK inside a coroutine. Outside of one nothing can wait: that is logged, and ERR_INTERNAL. Functions that
 * wait ask before they begin what they would wait for. */
enum err task_can_wait(const struct task *t) must_check;

/* Waits, and returns what task_wake was given, or why the task may not wait any longer (its time is up, the
 * service stops). Only in a coroutine. */
enum err task_wait(struct task *t, struct task_wait *w) must_check;
/* The same without a coroutine: returns at once, and w->woken is called later. */
void task_expect(struct task *t, struct task_wait *w);
void task_wake(struct task_wait *w, enum err why);

/* Ends its waiting early. False: it does not wait, or cannot stop now (see give_up). */
bool task_cancel(struct task *t, enum err why, bool even_writes);
/* The same without waking it: its memory is about to go. */
void task_forget(struct task *t);

/* Lets the loop serve others when its turn has lasted long: for work that does not wait otherwise. */
void task_breathe(struct task *t);
/* Ends such a pause early: there may be no further turn. */
void task_breathe_end(struct task *t);

#endif

/* A task: a unit of work on a loop that can wait. Every request and every background job has one. */
#ifndef DAYBOOK_SERVER_TASK_H
#define DAYBOOK_SERVER_TASK_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "server/loop.h"
#include "server/problem.h"

struct coro;
struct conn;
struct task;

/* Something that a task waits for. Embed it in the struct of the operation. */
struct task_wait {
    struct task *task;
    /* Cancels the operation because of *why, which it may replace. It must not wake the task afterwards.
     * Returns false if it cannot be cancelled now, because a write is in progress; with `even_writes` it
     * cancels that too. NULL: nothing to undo. */
    bool (*give_up)(struct task_wait *w, enum err *why, bool even_writes);
    /* Called when the wait ends, for tasks without a coroutine. NULL: resumes the coroutine. */
    void (*woken)(struct task_wait *w);
    bool elsewhere; /* another server or the worker works meanwhile, under a time limit of its own */
    enum err why;   /* the result of the wait */
};

struct task {
    struct loop *loop;
    struct arena *arena;     /* freed with the task */
    struct problem *problem; /* takes the detail of an error */
    const char *owner;       /* the owner of the data */
    const char *id;          /* for the log: the request id, or the name of the job */
    struct coro *coro;       /* the suspended coroutine; NULL: running, or none */
    struct task_wait *wait;  /* NULL: not waiting */
    int64_t elsewhere_us;    /* how long it waited for others so far; minus the clock's time while it does */
    enum err over;           /* not OK: it was cancelled, for this reason, and starts no further step */
    struct {
        struct conn *tx; /* the connection of its open transaction */
        bool retry;      /* the last statement failed only because of another transaction */
    } db;                /* used by db/ only */
};

/* OK inside a coroutine. The reason once the task is cancelled. Otherwise logs a bug and returns
 * ERR_INTERNAL. Functions that wait check this before they start the operation. */
enum err task_can_wait(const struct task *t) must_check;

/* Waits. Returns the argument of task_wake, or the reason of a cancellation (time-out, shutdown). Only in a
 * coroutine. */
enum err task_wait(struct task *t, struct task_wait *w) must_check;
/* The same without a coroutine: returns immediately, and w->woken is called later. */
void task_expect(struct task *t, struct task_wait *w);
void task_wake(struct task_wait *w, enum err why);

/* How long it has waited for other servers and the worker, until now. */
int64_t task_elsewhere_us(const struct task *t);

/* Cancels the task for good: whatever it waits for now, it starts no further step. Also cancels the wait and
 * wakes the task. Returns false if it is not waiting or the wait cannot be cancelled now (see give_up). */
bool task_cancel(struct task *t, enum err why, bool even_writes);
/* Cancels the wait without waking the task, which is about to be freed. */
void task_forget(struct task *t);

/* Yields to the loop if this turn has lasted long. For work that does not wait otherwise. */
void task_yield(struct task *t);
/* Resumes a task that yielded, because the loop may not turn again. The task may yield once more before this
 * returns. Returns false if it had not yielded. */
bool task_resume_yielded(struct task *t);

#endif

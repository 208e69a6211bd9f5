/* Work that takes long without waiting for anything: done by a thread beside its loop, step by step. */
#ifndef DAYBOOK_SERVER_WORKER_H
#define DAYBOOK_SERVER_WORKER_H

#include <stdatomic.h>

#include "server/task.h"

struct worker;

/* Jobs wait in two lines, which are served in turn, so that what a search waits for never stands behind more
 * than one turn of a job of the other line, however many there are. */
enum worker_line { WORKER_STATISTICS, WORKER_TEXTS, WORKER_LINES };

/* The first member of what a caller knows about its job; all but the first four are the worker's. */
struct worker_job {
    /* Does the next piece, in the thread. True: all is done. A piece should take a millisecond or two: jobs
     * take turns, and the service does not stop in the middle of one. */
    bool (*step)(struct worker_job *job);
    /* On the loop's thread, when nobody uses the job any more: frees it, and all that it points to. */
    void (*release)(struct worker_job *job);
    enum worker_line line;
    int turn_us; /* pieces are done until so much time has gone by, then it is the turn of another; 0: one */

    struct worker_job *next;
    struct task_wait wait;
    atomic_bool abandoned; /* the task has gone on without it: no more steps */
};

/* One for each loop, opened before it turns. NULL: no thread, or no descriptor. */
struct worker *worker_open(struct loop *loop);
/* On the loop's thread: ends those that still wait with ERR_SHUTTING_DOWN, and the thread. */
void worker_close(struct worker *w);

/* Runs it, while the loop goes on. OK: it is done, and the caller releases it. Any other error: the task may
 * not wait any longer, and the job will be released by the worker; so whatever a job points to is its own,
 * never the task's. Only in a coroutine. */
enum err worker_run(struct task *t, struct worker_job *job) must_check;

/* Runs it for nobody: the worker releases it, done or not. */
void worker_post(struct loop *loop, struct worker_job *job);

/* For tasks whose jobs take much memory: so many of a loop are inside at a time, from before they gather what
 * they need until they have released it. The others wait their turn, in the order in which they came. OK: it
 * is inside, and leaves. Only in a coroutine. */
enum { WORKER_INSIDE_MAX = 2 };
enum err worker_enter(struct task *t) must_check;
void worker_leave(struct loop *loop);

/* How many there are, waiting or being worked on. */
int64_t worker_jobs(const struct worker *w);

/* What the thread is to do when nothing has been asked of it for so many seconds after a job: give memory
 * back. Said before the first job, once. */
void worker_when_idle(struct worker *w, int after_s, void (*idle)(void *arg), void *arg);

#endif

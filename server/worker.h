/* CPU-bound work: each loop has a worker thread that runs jobs step by step. */
#ifndef DAYBOOK_SERVER_WORKER_H
#define DAYBOOK_SERVER_WORKER_H

#include <stdatomic.h>

#include "server/task.h"

struct worker;

/* Two queues, served alternately, so that a search waits for at most one turn of a statistics job, no matter
 * how many of those are queued. */
enum worker_queue { WORKER_STATISTICS, WORKER_TEXTS, WORKER_QUEUES };

/* Embed it as the first member of a job. The caller sets the first four members. */
struct worker_job {
    /* Does the next step, on the worker's thread. Returns true if the job is finished. A step should take a
     * millisecond or two: jobs take turns, and a shutdown waits for the current step. */
    bool (*step)(struct worker_job *job);
    /* Frees the job and everything it points to. Runs on the loop's thread when the job is no longer used. */
    void (*release)(struct worker_job *job);
    enum worker_queue queue;
    int turn_us; /* how long the job runs before the next job's turn; 0: one step */

    struct worker_job *next;
    struct task_wait wait;
    atomic_bool abandoned; /* the task no longer waits: run no more steps */
};

/* One for each loop, opened before the loop runs. NULL: cannot create a thread or a descriptor. */
struct worker *worker_open(struct loop *loop);
/* Call it on the loop's thread. Wakes all waiting tasks with ERR_SHUTTING_DOWN and joins the thread. */
void worker_close(struct worker *w);

/* Runs the job and waits for it, without blocking the loop. OK: finished, and the caller releases the job.
 * Any other result: the task was cancelled, and the worker releases the job later. So a job must own
 * everything it points to. Only in a coroutine. */
enum err worker_run(struct task *t, struct worker_job *job) must_check;

/* Runs the job in the background. The worker releases it, finished or not. */
void worker_post(struct loop *loop, struct worker_job *job);

/* Limits how many tasks of a loop run large jobs at a time. Call worker_enter before you load the data, and
 * worker_leave after you have released it. Tasks above the limit wait in the order of their arrival. If
 * worker_enter returns OK, worker_leave must follow. Only in a coroutine. */
enum { WORKER_SLOTS = 2 };
enum err worker_enter(struct task *t) must_check;
void worker_leave(struct loop *loop);

/* Jobs that are queued or running. */
int64_t worker_jobs(const struct worker *w);

/* Calls `idle` on the worker's thread after `after_s` seconds without a job, to free memory. Set it once,
 * before the first job. */
void worker_when_idle(struct worker *w, int after_s, void (*idle)(void *arg), void *arg);

#endif

/* CPU-bound work of a request, on the worker thread of its loop. */
#ifndef DAYBOOK_HANDLERS_KIT_JOB_H
#define DAYBOOK_HANDLERS_KIT_JOB_H

#include "server/dispatch/call.h"

/* A job owns its memory, because the worker may still use it after the request was cancelled. `work` and
 * everything it points to must be in the job's arena, or be closed by it (arena_on_release). */
struct job {
    struct arena *arena;
    void *work;             /* set by the caller before the first job_run */
    struct job_memory *own; /* NULL: left to the worker */
};

/* `step` does the next millisecond or two of the work on the worker thread, and returns true when there is
 * nothing left to do. The job is released with `owner`. */
struct job *job_open(struct arena *owner, bool (*step)(void *work));

/* Runs steps until there is nothing left to do. May be called again with more work. Any result but OK: the
 * request was cancelled, and the job must not be used any more. Only in a coroutine. */
enum err job_run(struct call *c, struct job *job) must_check;

/* Runs fn(c), but only a few of these at a time in each loop: for jobs that take tens of megabytes. `fn` must
 * release its memory before it returns. Only in a coroutine. */
enum err job_limited(struct call *c, enum err (*fn)(struct call *c)) must_check;

#endif

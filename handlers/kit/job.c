/* CPU-bound work of a request, on the worker thread of its loop. */
#include "handlers/kit/job.h"

#include "server/worker.h"

enum { TURN_US = 1000 }; /* then the next job has its turn */

/* In its own arena. Released by the arena that owns the job, or by the worker if the request was cancelled.
 */
struct job_memory {
    struct worker_job job;
    struct arena arena;
    bool (*step)(void *work);
    void *work;
};

static bool memory_step(struct worker_job *job)
{
    struct job_memory *own = container_of(job, struct job_memory, job);
    return own->step(own->work);
}

static void memory_release(struct worker_job *job)
{
    struct arena arena = container_of(job, struct job_memory, job)->arena;
    arena_release(&arena);
}

static void job_close(void *arg)
{
    const struct job *job = arg;
    if (job->own)
        memory_release(&job->own->job);
}

struct job *job_open(struct arena *owner, bool (*step)(void *work))
{
    struct arena arena = { 0 };
    struct job_memory *own = arena_zero(&arena, sizeof *own);
    struct job *job = arena_alloc(owner, sizeof *job);
    own->job = (struct worker_job){ .step = memory_step, .release = memory_release, .turn_us = TURN_US };
    own->arena = arena;
    own->step = step;
    *job = (struct job){ .arena = &own->arena, .own = own };
    arena_on_release(owner, job_close, job);
    return job;
}

enum err job_run(struct call *c, struct job *job)
{
    struct job_memory *own = job->own;
    own->work = job->work;
    job->own = NULL;
    TRY(worker_run(&c->task, &own->job));
    job->own = own;
    return OK;
}

enum err job_limited(struct call *c, enum err (*fn)(struct call *c))
{
    TRY(worker_enter(&c->task));
    enum err err = fn(c);
    worker_leave(c->loop);
    return err;
}

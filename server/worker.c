/* CPU-bound work: each loop has a worker thread that runs jobs step by step. */
#include "server/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "server/loop.h"

/* Lower priority than the loops, which serve other requests meanwhile. */
enum { NICENESS = 3, STACK_BYTES = 256 * 1024 };

struct list {
    struct worker_job *first, *last;
};

/* A task that waits in worker_enter; on the task's own stack. */
struct pending {
    struct task_wait wait;
    struct worker *w;
    struct pending *next;
};

/* A job is in one of the lists, or being run by the thread. */
struct worker {
    struct loop *loop;
    int64_t jobs;            /* unfinished jobs; used by the loop only */
    int inside;              /* tasks between worker_enter and worker_leave; used by the loop only */
    struct pending *pending; /* tasks in worker_enter, oldest first; used by the loop only */
    struct watch done_watch; /* an eventfd: `done` is not empty */
    pthread_t thread;
    void (*idle)(void *arg);
    void *idle_arg;
    int idle_s;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct list queues[WORKER_QUEUES], done;
    int queue; /* the queue that was served last */
    bool stopping;
};

/* ---- lists ---- */

static void append(struct list *l, struct worker_job *job)
{
    job->next = NULL;
    *(l->last ? &l->last->next : &l->first) = job;
    l->last = job;
}

static struct worker_job *take_first(struct list *l)
{
    struct worker_job *job = l->first;
    if (job && !(l->first = job->next))
        l->last = NULL;
    return job;
}

/* Alternates between the queues. */
static struct worker_job *take_next(struct worker *w)
{
    struct worker_job *job = NULL;
    for (int i = 0; i < WORKER_QUEUES && !job; i++) {
        w->queue = (w->queue + 1) % WORKER_QUEUES;
        job = take_first(&w->queues[w->queue]);
    }
    return job;
}

/* ---- the thread ---- */

/* Call it with the lock held. *warm: a job has run since the last call of `idle`. */
static void wait_for_change(struct worker *w, bool *warm)
{
    if (!*warm || !w->idle) {
        pthread_cond_wait(&w->changed, &w->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += w->idle_s;
    if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        return;
    *warm = false;
    pthread_mutex_unlock(&w->lock); /* `idle` may take long, and the loop must be able to add jobs */
    w->idle(w->idle_arg);
    pthread_mutex_lock(&w->lock);
}

/* Waits for a job, with the lock held. NULL: the worker stops. */
static struct worker_job *next_job(struct worker *w, bool *warm)
{
    struct worker_job *job = NULL;
    while (!w->stopping && !(job = take_next(w)))
        wait_for_change(w, warm);
    return job;
}

/* Returns true if the job is finished or abandoned. */
static bool take_turn(struct worker_job *job)
{
    const int64_t until_us = job->turn_us ? loop_clock_us() + job->turn_us : 0;
    do {
        if (atomic_load(&job->abandoned) || job->step(job))
            return true;
    } while (until_us && loop_clock_us() < until_us);
    return false;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    bool warm = false;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    pthread_mutex_lock(&w->lock);
    for (struct worker_job *job; (job = next_job(w, &warm));) {
        pthread_mutex_unlock(&w->lock);
        bool finished = take_turn(job);
        warm = true;
        pthread_mutex_lock(&w->lock);
        append(finished ? &w->done : &w->queues[job->queue], job);
        if (finished)
            eventfd_write(w->done_watch.fd, 1);
    }
    pthread_mutex_unlock(&w->lock);
    arena_thread_end();
    return NULL;
}

/* ---- on the loop's thread ---- */

/* Wakes the task, which owns the job if err is OK. Otherwise the job is released here. */
static void finish_job(struct worker *w, struct worker_job *job, enum err err)
{
    w->jobs--;
    bool awaited = job->wait.task && !atomic_load(&job->abandoned);
    if (awaited)
        task_wake(&job->wait, err);
    if (!awaited || err != OK)
        job->release(job);
}

static void finish_jobs(struct worker *w, struct list *l, enum err err)
{
    for (struct worker_job *job; (job = take_first(l));)
        finish_job(w, job, err);
}

static void on_done(struct watch *watch, uint32_t events)
{
    (void)events;
    struct worker *w = container_of(watch, struct worker, done_watch);
    eventfd_t count;
    eventfd_read(watch->fd, &count);
    pthread_mutex_lock(&w->lock);
    struct list done = w->done;
    w->done = (struct list){ 0 };
    pthread_mutex_unlock(&w->lock);
    finish_jobs(w, &done, OK);
}

static bool give_up(struct task_wait *wait, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    atomic_store(&container_of(wait, struct worker_job, wait)->abandoned, true);
    return true;
}

/* Returns false and releases the job if the worker stops. */
static bool enqueue(struct worker *w, struct worker_job *job)
{
    if (!w || w->stopping) {
        job->release(job);
        return false;
    }
    job->wait.give_up = give_up;
    w->jobs++;
    pthread_mutex_lock(&w->lock);
    append(&w->queues[job->queue], job);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return true;
}

enum err worker_run(struct task *t, struct worker_job *job)
{
    enum err err = task_can_wait(t);
    if (err != OK) {
        job->release(job);
        return err;
    }
    job->wait.task = t; /* before the thread can see the job */
    job->wait.elsewhere = true;
    return enqueue(t->loop->worker, job) ? task_wait(t, &job->wait) : ERR_SHUTTING_DOWN;
}

void worker_post(struct loop *loop, struct worker_job *job)
{
    enqueue(loop->worker, job);
}

int64_t worker_jobs(const struct worker *w)
{
    return w->jobs;
}

void worker_when_idle(struct worker *w, int after_s, void (*idle)(void *arg), void *arg)
{
    w->idle_s = after_s;
    w->idle = idle;
    w->idle_arg = arg;
}

/* ---- large jobs ---- */

static bool cancel_pending(struct task_wait *wait, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct pending *e = container_of(wait, struct pending, wait), **at = &e->w->pending;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    return true;
}

static void wake_first(struct worker *w, enum err err)
{
    struct pending *e = w->pending;
    w->pending = e->next;
    task_wake(&e->wait, err);
}

enum err worker_enter(struct task *t)
{
    struct worker *w = t->loop->worker;
    TRY(task_can_wait(t));
    if (!w || w->stopping)
        return ERR_SHUTTING_DOWN;
    if (w->inside < WORKER_SLOTS) {
        w->inside++;
        return OK;
    }
    struct pending e = { .wait = { .give_up = cancel_pending, .elsewhere = true }, .w = w },
                   **last = &w->pending;
    while (*last)
        last = &(*last)->next;
    *last = &e;
    return task_wait(t, &e.wait);
}

void worker_leave(struct loop *loop)
{
    struct worker *w = loop->worker;
    if (!w)
        return;
    if (w->pending)
        wake_first(w, OK); /* the woken task takes over the slot */
    else
        w->inside--;
}

/* ---- open and close ---- */

static bool start_thread(struct worker *w)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    int failed = pthread_create(&w->thread, &small, run, w);
    pthread_attr_destroy(&small);
    return !failed;
}

struct worker *worker_open(struct loop *loop)
{
    struct worker *w = memory_zero(1, sizeof *w);
    w->loop = loop;
    w->done_watch = (struct watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_done };
    if (w->done_watch.fd < 0 || !start_thread(w))
        return NULL; /* the service does not start */
    loop_watch(loop, &w->done_watch, EPOLLIN);
    return w;
}

void worker_close(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    while (w->pending)
        wake_first(w, ERR_SHUTTING_DOWN);
    finish_jobs(w, &w->done, ERR_SHUTTING_DOWN);
    for (int i = 0; i < WORKER_QUEUES; i++)
        finish_jobs(w, &w->queues[i], ERR_SHUTTING_DOWN);
    loop_watch(w->loop, &w->done_watch, 0);
    close(w->done_watch.fd);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}

/* The built-in embedder of one loop: a thread that works while the loop goes on. */
#include "server/embed_worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/log.h"
#include "server/loop.h"

/* A little behind the loops, which answer others meanwhile; idle for so long, it gives its memory back. */
enum { NICE = 3, IDLE_S = 30, STACK_BYTES = 256 * 1024 };

/* The texts of one call, in one block with its vectors. Made and freed by the loop; between that it is in one
 * of the worker's lists, or in its hands. */
struct job {
    struct job *next;
    struct call_wait wait;
    atomic_bool abandoned; /* the call has gone on without it */
    size_t count, done;
    float *out, *to; /* and where the call wants them */
    char *at;        /* the next text; each has its NUL */
};

struct list {
    struct job *first, *last;
};

struct embed_worker {
    struct loop *loop;
    struct watch done_watch; /* an eventfd: something is in `done` */
    pthread_t thread;
    struct embed_scratch *scratch;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    struct list queue, done;
    bool stopping;
    _Atomic int64_t queued, texts, us;
};

/* ---- the weights ---- */

extern const unsigned char embed_weights[], embed_weights_end[];

static struct embed weights;
static bool weights_are_good;
static pthread_once_t weights_once = PTHREAD_ONCE_INIT;

/* They stay in the page cache: asking for them again costs no more than asking the first time. */
static void give_back(const void *bytes, size_t len)
{
    madvise((void *)(uintptr_t)bytes, len, MADV_DONTNEED);
}

static void weights_open(void)
{
    size_t len = (size_t)(embed_weights_end - embed_weights);
    weights_are_good = embed_open(embed_weights, len, &weights);
    give_back(embed_weights, len);
    if (!weights_are_good)
        log_event(LOG_ERROR, "embedder", "the weights of the built-in embedder are damaged");
}

/* ---- lists ---- */

static void append(struct list *l, struct job *job)
{
    job->next = NULL;
    *(l->last ? &l->last->next : &l->first) = job;
    l->last = job;
}

static struct job *take_first(struct list *l)
{
    struct job *job = l->first;
    if (job && !(l->first = job->next))
        l->last = NULL;
    return job;
}

/* ---- the thread ---- */

static void embed_next(struct embed_worker *w, struct job *job)
{
    int64_t start_us = loop_clock_us();
    if (weights_are_good)
        embed_text(&weights, w->scratch, job->at, job->out + job->done * EMBED_DIM);
    job->at += strlen(job->at) + 1;
    job->done++;
    atomic_fetch_add(&w->texts, weights_are_good);
    atomic_fetch_add(&w->us, loop_clock_us() - start_us);
}

/* Waits for a job, with the lock held. NULL: it is to stop. */
static struct job *next_job(struct embed_worker *w, bool *warm)
{
    while (!w->stopping && !w->queue.first) {
        if (!*warm) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_S;
        if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT) {
            give_back(embed_weights, (size_t)(embed_weights_end - embed_weights));
            give_back(w->scratch, embed_scratch_bytes());
            *warm = false;
        }
    }
    return w->stopping ? NULL : take_first(&w->queue);
}

/* One text, then it is the turn of the next job: a question does not wait behind a rebuild. */
static void *run(void *arg)
{
    struct embed_worker *w = arg;
    bool warm = false;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    pthread_once(&weights_once, weights_open);
    pthread_mutex_lock(&w->lock);
    for (struct job *job; (job = next_job(w, &warm));) {
        pthread_mutex_unlock(&w->lock);
        bool abandoned = atomic_load(&job->abandoned);
        if (!abandoned)
            embed_next(w, job);
        warm = true;
        atomic_fetch_sub(&w->queued, abandoned ? (int64_t)(job->count - job->done) : 1);
        bool finished = abandoned || job->done == job->count;
        pthread_mutex_lock(&w->lock);
        append(finished ? &w->done : &w->queue, job);
        if (finished)
            eventfd_write(w->done_watch.fd, 1);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the loop's side ---- */

/* The call goes on, unless it did not wait; then nobody needs the job any more. */
static void end_job(struct job *job, enum err err)
{
    if (!job->abandoned) {
        job->abandoned = true;
        if (err == OK)
            memcpy(job->to, job->out, job->count * EMBED_DIM * sizeof *job->out);
        call_wake(&job->wait, err);
    }
    free(job);
}

static void end_jobs(struct list *l, enum err err)
{
    for (struct job *job; (job = take_first(l));)
        end_job(job, err);
}

static void on_done(struct watch *watch, uint32_t events)
{
    (void)events;
    struct embed_worker *w = container_of(watch, struct embed_worker, done_watch);
    eventfd_t count;
    eventfd_read(watch->fd, &count);
    pthread_mutex_lock(&w->lock);
    struct list done = w->done;
    w->done = (struct list){ 0 };
    pthread_mutex_unlock(&w->lock);
    end_jobs(&done, weights_are_good ? OK : ERR_EMBEDDER_UNAVAILABLE);
}

static void give_up(struct call_wait *wait)
{
    container_of(wait, struct job, wait)->abandoned = true;
}

static struct job *job_new(const char *const *texts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += embed_text_bytes(texts[i]) + 1;
    struct job *job = calloc(1, sizeof *job + count * EMBED_DIM * sizeof(float) + bytes);
    if (!job)
        abort();
    job->wait.give_up = give_up;
    job->count = count;
    job->out = (float *)(void *)(job + 1);
    char *to = job->at = (char *)(job->out + count * EMBED_DIM);
    for (size_t i = 0; i < count; i++) {
        size_t len = embed_text_bytes(texts[i]);
        memcpy(to, texts[i], len);
        to += len + 1;
    }
    return job;
}

enum err embed_worker_embed(struct call *c, const char *const *texts, size_t count, float *out)
{
    struct embed_worker *w = c->loop->embed_worker;
    if (w->stopping)
        return ERR_SHUTTING_DOWN;
    if (!count)
        return OK;
    struct job *job = job_new(texts, count);
    job->to = out;
    atomic_fetch_add(&w->queued, (int64_t)count);
    pthread_mutex_lock(&w->lock);
    append(&w->queue, job);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return call_wait(c, &job->wait);
}

void embed_worker_stats(const struct embed_worker *w, struct embed_worker_stats *out)
{
    *out = (struct embed_worker_stats){ .queued = w->queued, .texts = w->texts, .us = w->us };
}

/* ---- open and close ---- */

static bool start_thread(struct embed_worker *w)
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

struct embed_worker *embed_worker_open(struct loop *loop)
{
    struct embed_worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->loop = loop;
    w->done_watch = (struct watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_done };
    w->scratch =
        mmap(NULL, embed_scratch_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->done_watch.fd < 0 || w->scratch == MAP_FAILED || !start_thread(w))
        return NULL; /* the service does not start */
    loop_watch(loop, &w->done_watch, EPOLLIN);
    return w;
}

void embed_worker_close(struct embed_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    end_jobs(&w->done, ERR_SHUTTING_DOWN);
    end_jobs(&w->queue, ERR_SHUTTING_DOWN);
    loop_watch(w->loop, &w->done_watch, 0);
    close(w->done_watch.fd);
    munmap(w->scratch, embed_scratch_bytes());
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}

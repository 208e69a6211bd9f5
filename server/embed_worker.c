/* The built-in embedder of one loop: what its worker does for texts. */
#include "server/embed_worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/memory.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/worker.h"

enum { IDLE_S = 30 }; /* then the pages of the weights are released */

struct embed_worker {
    struct embed_scratch *scratch; /* the thread's */
    _Atomic int64_t queued, texts, us;
};

/* The texts of one call, in one block with its vectors. A turn is one text: a question does not wait behind
 * a rebuild. */
struct job {
    struct worker_job job;
    struct embed_worker *w;
    size_t count, done;
    float *out;
    char *at; /* the next text; each has its NUL */
};

/* ---- the weights ---- */

extern const unsigned char embed_weights[], embed_weights_end[];

static struct embed weights;
static bool weights_are_good;
static pthread_once_t weights_once = PTHREAD_ONCE_INIT;

/* They stay in the page cache: asking for them again costs no more than asking the first time. */
static void release_pages(const void *bytes, size_t len)
{
    madvise((void *)(uintptr_t)bytes, len, MADV_DONTNEED);
}

static void weights_open(void)
{
    size_t len = (size_t)(embed_weights_end - embed_weights);
    weights_are_good = embed_open(embed_weights, len, &weights);
    release_pages(embed_weights, len);
    if (!weights_are_good)
        log_event(LOG_ERROR, "embedder", "the weights of the built-in embedder are damaged");
}

static bool weights_step(struct worker_job *job)
{
    (void)job;
    pthread_once(&weights_once, weights_open);
    return true;
}

static void weights_release(struct worker_job *job)
{
    free(job);
}

/* The first job of the thread, before any text. */
static void post_weights(struct loop *loop)
{
    struct worker_job *job = memory_zero(1, sizeof *job);
    *job = (struct worker_job){ .step = weights_step, .release = weights_release, .queue = WORKER_TEXTS };
    worker_post(loop, job);
}

/* ---- the thread's side ---- */

static bool embed_step(struct worker_job *j)
{
    struct job *job = (struct job *)j;
    int64_t start_us = loop_clock_us();
    if (weights_are_good)
        embed_text(&weights, job->w->scratch, job->at, job->out + job->done * EMBED_DIM);
    job->at += strlen(job->at) + 1;
    job->done++;
    atomic_fetch_add(&job->w->texts, weights_are_good);
    atomic_fetch_add(&job->w->us, loop_clock_us() - start_us);
    atomic_fetch_sub(&job->w->queued, 1);
    return job->done == job->count;
}

static void release_all(void *arg)
{
    const struct embed_worker *w = arg;
    release_pages(embed_weights, (size_t)(embed_weights_end - embed_weights));
    release_pages(w->scratch, embed_scratch_bytes());
}

/* ---- the loop's side ---- */

static void embed_release(struct worker_job *j)
{
    struct job *job = (struct job *)j;
    atomic_fetch_sub(&job->w->queued, (int64_t)(job->count - job->done));
    free(job);
}

static struct job *job_new(struct embed_worker *w, const char *const *texts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += embed_text_bytes(texts[i]) + 1;
    struct job *job = memory_zero(1, sizeof *job + count * EMBED_DIM * sizeof(float) + bytes);
    job->job = (struct worker_job){ .step = embed_step, .release = embed_release, .queue = WORKER_TEXTS };
    job->w = w;
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

enum err embed_worker_embed(struct task *t, const char *const *texts, size_t count, float *out)
{
    struct embed_worker *w = t->loop->embed_worker;
    if (!count)
        return OK;
    struct job *job = job_new(w, texts, count);
    atomic_fetch_add(&w->queued, (int64_t)count);
    TRY(worker_run(t, &job->job));
    if (weights_are_good)
        memcpy(out, job->out, count * EMBED_DIM * sizeof *out);
    embed_release(&job->job);
    return weights_are_good ? OK : ERR_EMBEDDER_UNAVAILABLE;
}

void embed_worker_stats(const struct embed_worker *w, struct embed_worker_stats *out)
{
    *out = (struct embed_worker_stats){ .queued = w->queued, .texts = w->texts, .us = w->us };
}

/* ---- open and close ---- */

struct embed_worker *embed_worker_open(struct loop *loop)
{
    struct embed_worker *w = memory_zero(1, sizeof *w);
    w->scratch =
        mmap(NULL, embed_scratch_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->scratch == MAP_FAILED)
        memory_exhausted(embed_scratch_bytes());
    worker_when_idle(loop->worker, IDLE_S, release_all, w);
    post_weights(loop);
    return w;
}

void embed_worker_close(struct embed_worker *w)
{
    munmap(w->scratch, embed_scratch_bytes());
    free(w);
}

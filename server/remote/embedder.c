/* The embedding endpoint of the configuration: OpenAI-compatible, in batches, behind a circuit breaker. */
#include "server/remote/embedder.h"

#include <stdlib.h>
#include <string.h>

#include "server/config.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/remote/breaker.h"
#include "server/remote/embedder_wire.h"
#include "server/remote/retry.h"
#include "server/remote/url.h"

enum {
    BATCH = 64,
    SHORT_BYTES = 250,  /* a text of this length is too long for nobody */
    MOST_REFUSALS = 30, /* of one batch: enough to find two texts among 64 and cut them */
};

/* Short: whoever waits has something else to fall back on. */
static const struct retry_policy policy = { .tries = 3, .first_ms = 100, .most_ms = 1000 };

struct remote_embedder {
    struct arena arena;
    const char *url, *host;
    const char *headers[2];
    struct breaker breaker;
};

struct remote_embedder *remote_embedder_open(const struct loop *l)
{
    const struct config *config = l->config;
    if (!config->embedding_url[0])
        return NULL;
    struct remote_embedder *e = calloc(1, sizeof *e);
    e->url = url_of(&e->arena, config->embedding_url, "embeddings");
    e->host = url_host(&e->arena, e->url);
    if (config->embedding_key[0])
        e->headers[0] = arena_fmt(&e->arena, "Authorization: Bearer %s", config->embedding_key);
    return e;
}

void remote_embedder_close(struct remote_embedder *e)
{
    if (!e)
        return;
    arena_release(&e->arena);
    free(e);
}

bool remote_embedder_available(const struct loop *l)
{
    return breaker_lets_in(&l->embedder->breaker, loop_clock_us());
}

/* ---- one batch ---- */

/* What a batch came to: whether it is embedded, and what that says about the endpoint. */
enum verdict {
    EMBEDDED,
    REFUSED,    /* it did not like these texts, which says nothing about others */
    OUT_OF_USE, /* it failed, or will not do what the settings ask for */
};

struct batch {
    const char *const *texts;
    size_t count;
    size_t most_bytes; /* of each text */
    float *out;
    int tries;
    bool timed_out;
    const char *why;
};

static bool is_about_texts(int status)
{
    return status == 400 || status == 413 || status == 422;
}

static enum verdict understand(struct task *t, struct batch *b, const struct remote_answer *r,
                               struct arena *scratch)
{
    if (r->outcome != REMOTE_ANSWERED) {
        b->timed_out = r->outcome == REMOTE_TIMEOUT;
        b->why = r->why;
        return OUT_OF_USE;
    }
    if (r->status < 200 || r->status > 299) {
        b->why = arena_fmt(t->arena, "it answered %d", r->status);
        return is_about_texts(r->status) ? REFUSED : OUT_OF_USE;
    }
    struct embedder_wire wire = {
        .count = b->count,
        .dim = (size_t)t->loop->config->embedding_dimension,
        .out = b->out,
    };
    embedder_wire_begin(&wire, r->body, r->len, scratch);
    while (embedder_wire_next(&wire))
        task_breathe(t); /* 64 vectors of 4,000 numbers are some megabytes of text */
    b->why = embedder_wire_faults[wire.fault];
    return wire.fault == EMBEDDINGS_OK ? EMBEDDED : OUT_OF_USE;
}

static enum err ask_in(struct task *t, struct batch *b, struct arena *scratch, enum verdict *verdict)
{
    const struct config *config = t->loop->config;
    const struct remote_embedder *e = t->loop->embedder;
    const struct embedder_wire_request asked = {
        .model = config->embedding_model,
        .texts = b->texts,
        .count = b->count,
        .most_bytes = b->most_bytes,
        .shorten_to = config->embedding_shorten ? (size_t)config->embedding_dimension : 0,
    };
    struct buf body = { .arena = scratch };
    embedder_wire_write(&body, &asked);
    const struct remote_request request = {
        .url = e->url,
        .headers = e->headers,
        .body = body.data,
        .body_len = body.len,
        .limit_ms = config->embedding_timeout_ms,
        .arena = scratch,
    };
    struct remote_answer r;
    TRY(retry_post(t, &request, &policy, &r, &b->tries));
    *verdict = understand(t, b, &r, scratch);
    return OK;
}

/* The texts and vectors of a batch are megabytes of JSON, and a task may embed a million entries: none of it
 * outlives the batch. */
static enum err ask(struct task *t, struct batch *b, enum verdict *verdict)
{
    struct arena scratch = { 0 };
    enum err err = ask_in(t, b, &scratch, verdict);
    arena_release(&scratch);
    return err;
}

/* Tells the breaker, and the operator when that changes something. */
static void judge(struct task *t, const struct batch *b, enum verdict verdict)
{
    struct remote_embedder *e = t->loop->embedder;
    const char *model = t->loop->config->embedding_model;
    if (verdict == REFUSED)
        breaker_leave(&e->breaker);
    if (verdict == EMBEDDED && breaker_success(&e->breaker))
        log_event(LOG_INFO, "embedder_back", "host=%s model=\"%s\" loop=%d", e->host, model, t->loop->index);
    if (verdict != OUT_OF_USE)
        return;
    log_event(LOG_WARN, "embedder_failed", "host=%s model=\"%s\" tries=%d request_id=%s why=\"%s\"", e->host,
              model, b->tries, t->id, b->why);
    if (breaker_failure(&e->breaker, loop_clock_us()))
        log_event(LOG_ERROR, "embedder_down", "host=%s model=\"%s\" loop=%d next_try_s=%lld why=\"%s\"",
                  e->host, model, t->loop->index, (long long)e->breaker.pause_us / 1000000, b->why);
}

static enum metrics_outcome outcome_of(const struct batch *b, enum err err, enum verdict verdict)
{
    if (err != OK)
        return OUTCOME_GIVEN_UP;
    return verdict == EMBEDDED ? OUTCOME_OK : b->timed_out ? OUTCOME_TIMEOUT : OUTCOME_FAILED;
}

/* `last`: there is nothing to try instead, so a refusal is a failure. */
static enum err embed_once(struct task *t, struct batch *b, bool last, enum verdict *verdict)
{
    struct remote_embedder *e = t->loop->embedder;
    int64_t started_us = loop_clock_us();
    if (!breaker_enter(&e->breaker, started_us)) {
        metrics_remote(t->loop->metrics, METRICS_EMBEDDING, OUTCOME_CIRCUIT_OPEN, 0, 0);
        *verdict = OUT_OF_USE;
        return OK;
    }
    enum err err = ask(t, b, verdict);
    if (err == OK && *verdict == REFUSED && last)
        *verdict = OUT_OF_USE;
    if (err == OK)
        judge(t, b, *verdict);
    else
        breaker_leave(&e->breaker);
    metrics_remote(t->loop->metrics, METRICS_EMBEDDING, outcome_of(b, err, *verdict),
                   loop_clock_us() - started_us, b->tries);
    metrics_circuit(t->loop->metrics, e->breaker.state != BREAKER_CLOSED);
    return err;
}

/* ---- all of them ---- */

/* How far a call has come. */
struct progress {
    bool works;   /* it has embedded something */
    int refusals; /* that the batch may still meet */
};

static void leave_out(struct task *t, const struct batch *b)
{
    memset(b->out, 0, b->count * (size_t)t->loop->config->embedding_dimension * sizeof *b->out);
    log_event(LOG_WARN, "embedder_refused", "host=%s model=\"%s\" request_id=%s texts=%zu why=\"%s\"",
              t->loop->embedder->host, t->loop->config->embedding_model, t->id, b->count, b->why);
}

/* One text that it finds too long, or cannot bear, shall not cost the others their vectors: what is refused
 * is asked for in halves, and a text alone by its first half, as long as `refusals` lasts. */
static enum err embed(struct task *t, struct batch b, struct progress *p)
{
    enum verdict verdict = OUT_OF_USE;
    size_t longest = b.count == 1 ? strnlen(b.texts[0], b.most_bytes) : b.most_bytes;
    bool shortest = b.count == 1 && longest <= SHORT_BYTES;
    if (!p->refusals) {
        leave_out(t, &b);
        return OK;
    }
    TRY(embed_once(t, &b, false, &verdict));
    p->works |= verdict == EMBEDDED;
    if (verdict != REFUSED)
        return verdict == EMBEDDED ? OK : ERR_EMBEDDER_UNAVAILABLE;
    p->refusals--;
    if (shortest) {
        leave_out(t, &b);
        return OK;
    }
    struct batch first = b, rest = b;
    if (b.count == 1) {
        first.most_bytes = longest / 2;
        return embed(t, first, p);
    }
    first.count = b.count / 2;
    rest.count = b.count - first.count;
    rest.texts += first.count;
    rest.out += first.count * (size_t)t->loop->config->embedding_dimension;
    TRY(embed(t, first, p));
    return embed(t, rest, p);
}

/* All were refused: is that about these texts, or about whatever it is asked? One that nobody refuses tells.
 */
static enum err try_any(struct task *t, struct progress *p)
{
    static const char *const text = "text";
    const struct config *config = t->loop->config;
    enum verdict verdict = OUT_OF_USE;
    struct batch b = {
        .texts = &text,
        .count = 1,
        .most_bytes = SHORT_BYTES,
        .out = arena_alloc(t->arena, (size_t)config->embedding_dimension * sizeof *b.out),
    };
    TRY(embed_once(t, &b, true, &verdict));
    p->works = verdict == EMBEDDED;
    return p->works ? OK : ERR_EMBEDDER_UNAVAILABLE;
}

enum err remote_embedder_embed(struct task *t, const char *const *texts, size_t count, float *out)
{
    const struct config *config = t->loop->config;
    struct progress p = { 0 };
    for (size_t i = 0; i < count; i += BATCH) {
        const struct batch b = {
            .texts = texts + i,
            .count = count - i < BATCH ? count - i : BATCH,
            .most_bytes = (size_t)config->embedding_max_bytes,
            .out = out + i * (size_t)config->embedding_dimension,
        };
        p.refusals = MOST_REFUSALS;
        TRY(embed(t, b, &p));
        if (!p.works)
            TRY(try_any(t, &p));
    }
    return OK;
}

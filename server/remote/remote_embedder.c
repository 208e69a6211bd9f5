/* The configured embedding endpoint: OpenAI-compatible, in batches, behind a circuit breaker. */
#include "server/remote/remote_embedder.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/remote/breaker.h"
#include "server/remote/embedder_wire.h"
#include "server/remote/retry.h"
#include "server/remote/url.h"

enum {
    BATCH = 64,
    SHORT_BYTES = 250,   /* no endpoint finds a text of this length too long */
    MAX_REJECTIONS = 30, /* per batch: enough to isolate and shorten two texts among 64 */
};

/* Short, because callers have a fallback. */
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
    struct remote_embedder *e = memory_zero(1, sizeof *e);
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
    return breaker_allows(&l->embedder->breaker, loop_clock_us());
}

/* ---- one batch ---- */

/* The outcome of a batch. */
enum verdict {
    EMBEDDED,
    REJECTED,    /* the endpoint rejected these texts, but may accept others */
    UNAVAILABLE, /* the endpoint failed, or does not support the settings */
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

static bool is_rejection(int status)
{
    return status == 400 || status == 413 || status == 422;
}

static enum verdict read_answer(struct task *t, struct batch *b, const struct remote_answer *r,
                                struct arena *scratch)
{
    if (r->outcome != REMOTE_ANSWERED) {
        b->timed_out = r->outcome == REMOTE_TIMEOUT;
        b->why = r->why;
        return UNAVAILABLE;
    }
    if (r->status < 200 || r->status > 299) {
        b->why = arena_fmt(t->arena, "it answered %d", r->status);
        return is_rejection(r->status) ? REJECTED : UNAVAILABLE;
    }
    struct embedder_wire wire = {
        .count = b->count,
        .dim = (size_t)t->loop->config->embedding_dimension,
        .out = b->out,
    };
    embedder_wire_begin(&wire, r->body, r->len, scratch);
    while (embedder_wire_next(&wire))
        task_yield(t); /* 64 vectors of 4,000 numbers are several megabytes of JSON */
    b->why = embedder_wire_faults[wire.fault];
    return wire.fault == EMBEDDINGS_OK ? EMBEDDED : UNAVAILABLE;
}

static enum err ask_with_scratch(struct task *t, struct batch *b, struct arena *scratch,
                                 enum verdict *verdict)
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
    *verdict = read_answer(t, b, &r, scratch);
    return OK;
}

/* Frees the JSON of each batch at its end: it is megabytes, and a task may embed a million entries. */
static enum err ask(struct task *t, struct batch *b, enum verdict *verdict)
{
    struct arena scratch = { 0 };
    enum err err = ask_with_scratch(t, b, &scratch, verdict);
    arena_release(&scratch);
    return err;
}

/* Reports the outcome to the breaker, and logs failures and state changes. */
static void report_outcome(struct task *t, const struct batch *b, enum verdict verdict)
{
    struct remote_embedder *e = t->loop->embedder;
    const char *model = t->loop->config->embedding_model;
    if (verdict == REJECTED)
        breaker_leave(&e->breaker);
    if (verdict == EMBEDDED && breaker_success(&e->breaker))
        log_event(LOG_INFO, "embedder_back", "host=%s model=\"%s\" loop=%d", e->host, model, t->loop->index);
    if (verdict != UNAVAILABLE)
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

/* `last`: there is nothing else to try, so a rejection counts as a failure. */
static enum err embed_once(struct task *t, struct batch *b, bool last, enum verdict *verdict)
{
    struct remote_embedder *e = t->loop->embedder;
    int64_t started_us = loop_clock_us();
    if (!breaker_enter(&e->breaker, started_us)) {
        metrics_remote(t->loop->metrics, METRICS_EMBEDDING, OUTCOME_CIRCUIT_OPEN, 0, 0);
        *verdict = UNAVAILABLE;
        return OK;
    }
    enum err err = ask(t, b, verdict);
    if (err == OK && *verdict == REJECTED && last)
        *verdict = UNAVAILABLE;
    if (err == OK)
        report_outcome(t, b, *verdict);
    else
        breaker_leave(&e->breaker);
    metrics_remote(t->loop->metrics, METRICS_EMBEDDING, outcome_of(b, err, *verdict),
                   loop_clock_us() - started_us, b->tries);
    metrics_circuit(t->loop->metrics, e->breaker.state != BREAKER_CLOSED);
    return err;
}

/* ---- all batches ---- */

/* The state of one remote_embedder_embed call. */
struct progress {
    bool works;     /* the endpoint has embedded something */
    int rejections; /* left for this batch */
};

static void skip_texts(struct task *t, const struct batch *b)
{
    memset(b->out, 0, b->count * (size_t)t->loop->config->embedding_dimension * sizeof *b->out);
    log_event(LOG_WARN, "embedder_refused", "host=%s model=\"%s\" request_id=%s texts=%zu why=\"%s\"",
              t->loop->embedder->host, t->loop->config->embedding_model, t->id, b->count, b->why);
}

/* One rejected text must not cost the others their vectors. So split a rejected batch in halves, and shorten
 * a single rejected text to its first half, until `rejections` is used up. */
static enum err embed(struct task *t, struct batch b, struct progress *p)
{
    enum verdict verdict = UNAVAILABLE;
    size_t longest = b.count == 1 ? strnlen(b.texts[0], b.most_bytes) : b.most_bytes;
    bool shortest = b.count == 1 && longest <= SHORT_BYTES;
    if (!p->rejections) {
        skip_texts(t, &b);
        return OK;
    }
    TRY(embed_once(t, &b, false, &verdict));
    p->works |= verdict == EMBEDDED;
    if (verdict != REJECTED)
        return verdict == EMBEDDED ? OK : ERR_EMBEDDER_UNAVAILABLE;
    p->rejections--;
    if (shortest) {
        skip_texts(t, &b);
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

/* All texts were rejected. A harmless text shows whether the cause is the texts or the endpoint. */
static enum err probe_endpoint(struct task *t, struct progress *p)
{
    static const char *const text = "text";
    const struct config *config = t->loop->config;
    enum verdict verdict = UNAVAILABLE;
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
        p.rejections = MAX_REJECTIONS;
        TRY(embed(t, b, &p));
        if (!p.works)
            TRY(probe_endpoint(t, &p));
    }
    return OK;
}

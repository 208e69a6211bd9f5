/* Ticks: one at a time, or many in one body. */
#include <inttypes.h>
#include <string.h>

#include "core/base/time_text.h"
#include "handlers/kit/fields.h"
#include "handlers/ledger/ledger.h"
#include "handlers/reflection/reflection.h"
#include "handlers/routes.h"
#include "server/config.h"
#include "server/dispatch/idempotency.h"
#include "server/dispatch/query.h"

enum {
    TRIES_MAX = 16,              /* attempts while other runners store ticks first */
    BATCH_MAX = 64,              /* ticks in one statement */
    BATCH_BYTES = 256 * 1024,    /* of lines read ahead */
    RESPONSE_BYTES = 512 * 1024, /* of responses per statement: each lists every open trade */
};

struct progress {
    int64_t applied, replayed;
    bool reflection_due; /* after the last tick */
    int64_t durable_us;  /* ticks up to this one may be acknowledged again; MATERIALIZE_NO_TICK: none */
};

#define NOTHING_DONE ((struct progress){ .durable_us = MATERIALIZE_NO_TICK })

/* A tick and the number of its line; 0: it is the whole body. */
struct entry {
    int64_t line;
    struct tick_in *in;
};

/* In a bulk response each object gets the number of its line as its first member. */
static void put_response(struct buf *out, const struct entry *e, const struct tick_response *response)
{
    struct buf json = { .arena = out->arena };
    ledger_response_json(&json, response);
    if (e->line)
        buf_fmt(out, "{\"line\":%" PRId64 ",", e->line);
    buf_add(out, json.data + (e->line > 0), json.len - (e->line > 0));
    if (e->line)
        buf_char(out, '\n');
}

static int64_t tick_us(const struct tick_in *in)
{
    int64_t us = 0;
    (void)time_text_parse(in->tick_at, &us);
    return us;
}

/* Whether the tick can be applied to the ledger as loaded. */
static bool follows(const struct ledger *l, const struct tick_in *in)
{
    const int64_t us = tick_us(in);
    return us > l->session.last_tick_us && us < l->lessons_until_us;
}

/* Consecutive ticks of one deployment to apply. */
struct apply {
    struct arena *arena;
    const char *deployment_id;
    const struct entry *entries;
    size_t count;
    struct buf *out; /* receives the responses */
    struct progress *progress;
    size_t done; /* entries stored and answered, even if the next one fails */
};

/* A tick that was stored before must be as durable as the first time. Ticks of a deployment commit in their
 * order, so one wait is enough for all up to the last one. */
static enum err wait_durable(struct apply *a, const struct ledger *l)
{
    if (l->session.last_tick_us <= a->progress->durable_us)
        return OK;
    TRY(query_durable(l->c));
    a->progress->durable_us = l->session.last_tick_us;
    return OK;
}

static enum err replay_first(struct apply *a, const struct ledger *l)
{
    struct tick_response response;
    TRY(wait_durable(a, l));
    TRY(ledger_replay(l, a->entries[0].in, &response));
    a->progress->reflection_due = response.reflection_due;
    put_response(a->out, &a->entries[0], &response);
    a->progress->replayed++;
    a->done = 1;
    return OK;
}

/* Applies and stores as many consecutive entries as fit into one statement. Stops at a tick that fails, and
 * stores those before it. *stored stays false if another runner was first. */
static enum err apply_once(struct apply *a, struct ledger *l, bool *stored)
{
    struct tick_response responses[BATCH_MAX];
    enum err failed = OK;
    size_t n = 0;
    for (size_t bytes = 0; n < a->count && bytes < RESPONSE_BYTES && follows(l, a->entries[n].in); n++) {
        failed = ledger_apply(l, a->entries[n].in, &responses[n]);
        if (failed != OK)
            break;
        bytes += strlen(responses[n].ops) + strlen(responses[n].open);
    }
    if (n == 0)
        return failed;
    enum err err = ledger_store(l, responses, stored);
    if (err != OK || !*stored)
        return err;
    for (size_t i = 0; i < n; i++) /* only stored ticks are acknowledged */
        put_response(a->out, &a->entries[i], &responses[i]);
    a->done = n;
    a->progress->applied += (int64_t)n;
    a->progress->reflection_due = l->reflection_due;
    return failed;
}

/* Applies entries to the current ledger, and retries while other runners change it. */
static enum err apply_entries(struct call *c, struct apply *a)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct ledger l;
        bool stored = false;
        problem_clear(&c->problem); /* without the faults of earlier attempts */
        TRY(ledger_load(c, a->arena, a->deployment_id, a->entries[0].in->tick_at, &l));
        if (tick_us(a->entries[0].in) <= l.session.last_tick_us)
            return replay_first(a, &l);
        enum err err = apply_once(a, &l, &stored);
        if (err != OK || stored)
            return err;
    }
    return problem_set(&c->problem, ERR_OVERLOADED,
                       "other runners keep storing ticks of this deployment; try again");
}

/* ---- one tick ---- */

/* The tick is stored even if the reflection fails. The response reports the failure. */
static void put_failure(struct call *c, struct buf *out, enum err err)
{
    const bool skipped = err == ERR_REFLECTION_RUNNING || err == ERR_TIME_ORDER;
    buf_fmt(out, "{\"outcome\":\"%s\",\"reason\":\"%s\",\"detail\":", skipped ? "skipped" : "failed",
            problem_code(err));
    buf_json_string(out, c->problem.detail ? c->problem.detail : problem_title(err));
    buf_char(out, '}');
    problem_clear(&c->problem);
}

/* Adds the outcome of the reflection to the response of the tick. */
static void reflect_after(struct call *c, const struct tick_in *in, bool due, struct buf *out)
{
    const struct reflection_request ask = { .deployment_id = in->id,
                                            .as_of = in->tick_at,
                                            .max_trades = REFLECTION_TRADES_MAX };
    out->len--; /* the closing brace */
    buf_json_key(out, "reflection");
    const size_t start = out->len;
    enum err err = due ? reflection_run(c, &ask, out) : OK;
    if (!due)
        buf_text(out, "null");
    if (err != OK) {
        out->len = start;
        idempotency_partial_failure(c, err);
        put_failure(c, out, err);
    }
    buf_char(out, '}');
}

static enum err post_one(struct call *c, struct tick_in *in, struct buf *out, struct progress *progress)
{
    const struct entry entry = { .in = in };
    struct apply a = { .arena = &c->arena,
                       .deployment_id = in->id,
                       .entries = &entry,
                       .count = 1,
                       .out = out,
                       .progress = progress };
    return apply_entries(c, &a);
}

/* The response is built outside the reply: the transaction of the reflection stores the reply for the
 * Idempotency-Key, and must not store half of it. */
static enum err post_and_reflect(struct call *c, struct tick_in *in)
{
    struct progress progress = NOTHING_DONE;
    struct buf out = { .arena = &c->arena };
    TRY(post_one(c, in, &out, &progress));
    reflect_after(c, in, progress.reflection_due, &out);
    buf_add(call_reply_json(c, 200), out.data, out.len);
    return OK;
}

static enum err tick_post(struct call *c)
{
    struct tick_in *in = c->in;
    struct progress progress = NOTHING_DONE;
    return in->reflect ? post_and_reflect(c, in) : post_one(c, in, call_reply_json(c, 200), &progress);
}

/* ---- many ticks ---- */

struct batch {
    struct arena arena; /* of the lines and their ticks */
    struct entry entries[BATCH_MAX];
    size_t count;
    int64_t line;           /* number of the last line read */
    enum err bad;           /* why that line is not a tick */
    struct problem problem; /* with `bad`; apart from the problem of a tick before it */
    bool end;               /* of the body */
};

static enum err read_tick(struct call *c, struct arena *arena, const char *line, size_t len,
                          struct tick_in **tick)
{
    struct field_input input = {
        .body = line,
        .body_len = len,
        .depth_limit = (int)c->loop->config->max_json_depth,
        .now = c->now,
    };
    *tick = arena_zero(arena, sizeof **tick);
    return field_decode(c->route->line_fields, &input, arena, *tick, &c->problem);
}

static void read_batch(struct call *c, struct batch *b)
{
    size_t bytes = 0;
    b->count = 0;
    while (b->count < BATCH_MAX && bytes < BATCH_BYTES) {
        char *line;
        size_t len;
        struct entry *e = &b->entries[b->count];
        b->bad = call_body_line(c, &line, &len, &b->line);
        if (b->bad == OK && !line) {
            b->end = true;
            return;
        }
        if (b->bad == OK)
            b->bad = read_tick(c, &b->arena, line, len, &e->in);
        if (b->bad != OK) {
            b->problem = c->problem;
            return;
        }
        e->line = b->line;
        b->count++;
        bytes += len;
    }
}

static void put_problem(struct buf *out, struct call *c, enum err err, const struct problem *p, int64_t line)
{
    buf_fmt(out, "{\"line\":%" PRId64 ",\"problem\":", line);
    problem_json(out, err, p, c->request_id);
    buf_text(out, "}\n");
}

/* Applies as many ticks of the batch, from `*at` on, as fit into one statement, and sends the responses.
 * Responses can be much larger than the ticks, so they have their own arena. */
static enum err apply_some(struct call *c, const char *deployment_id, struct batch *b, size_t *at,
                           struct progress *p, enum err *failed)
{
    struct arena arena = { 0 };
    struct buf out = { .arena = &arena };
    struct apply a = { .arena = &arena,
                       .deployment_id = deployment_id,
                       .entries = b->entries + *at,
                       .count = b->count - *at,
                       .out = &out,
                       .progress = p };
    call_yield(c);
    *failed = apply_entries(c, &a);
    *at += a.done;
    if (*failed != OK) {
        b->line = b->entries[*at].line;
        put_problem(&out, c, *failed, &c->problem, b->line);
    }
    enum err sent = call_stream_write(c, out.data, out.len);
    arena_release(&arena);
    return sent;
}

/* Returns an error of the stream to the client. *failed is the error of line `b->line`, already reported. */
static enum err apply_batch(struct call *c, const char *deployment_id, struct batch *b, struct progress *p,
                            enum err *failed)
{
    for (size_t at = 0; at < b->count && *failed == OK;)
        TRY(apply_some(c, deployment_id, b, &at, p, failed));
    if (*failed != OK || b->bad == OK)
        return OK;
    struct buf out = { .arena = &b->arena };
    *failed = b->bad;
    put_problem(&out, c, b->bad, &b->problem, b->line);
    return call_stream_write(c, out.data, out.len);
}

static enum err check_deployment(struct call *c, const char *id)
{
    struct arena arena = { 0 };
    struct ledger found;
    enum err err = ledger_load(c, &arena, id, c->now, &found);
    arena_release(&arena);
    return err;
}

static enum err bulk_post(struct call *c)
{
    const struct tick_in *in = c->in;
    struct progress progress = NOTHING_DONE;
    struct batch batch = { 0 };
    enum err failed = OK, sent = OK;
    TRY(check_deployment(c, in->id));
    TRY(call_stream_begin(c, "application/x-ndjson"));
    while (failed == OK && sent == OK && !batch.end) {
        read_batch(c, &batch);
        sent = apply_batch(c, in->id, &batch, &progress, &failed);
        arena_release(&batch.arena);
    }
    TRY(sent);
    struct buf out = { .arena = &c->arena };
    buf_fmt(&out, "{\"done\":%s,\"applied\":%" PRId64 ",\"replayed\":%" PRId64 ",\"resume_at\":",
            failed == OK ? "true" : "false", progress.applied, progress.replayed);
    buf_fmt(&out, failed == OK ? "null}\n" : "%" PRId64 "}\n", batch.line);
    return call_stream_write(c, out.data, out.len);
}

static const struct field bulk_fields[] = {
    FIELD_ID(struct tick_in),
    END_FIELDS,
};

const struct route tick_routes[] = {
    { POST, "/v1/deployments/{id}/ticks", tick_post, INPUT(tick_fields, struct tick_in), .role = ROLE_AGENT,
      .waits = true, .models_with = "reflect" },
    { POST, "/v1/deployments/{id}/ticks/bulk", bulk_post, INPUT(bulk_fields, struct tick_in),
      .role = ROLE_AGENT, .waits = true, .lines = true, .line_fields = tick_body_fields },
    END_ROUTES,
};

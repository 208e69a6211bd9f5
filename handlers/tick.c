/* Ticks: one at a time, or many in one body. */
#include <inttypes.h>
#include <string.h>

#include "core/time_text.h"
#include "db/db.h"
#include "handlers/ledger.h"
#include "handlers/routes.h"
#include "server/config.h"

enum {
    TRIES = 16,                /* of ticks that others overtake */
    BATCH_MOST = 64,           /* ticks in one statement */
    BATCH_BYTES = 256 * 1024,  /* of lines that are read ahead */
    ANSWER_BYTES = 512 * 1024, /* of answers in one statement: a tick answers with every open trade */
};

/* What came of the ticks up to here. */
struct progress {
    int64_t applied, replayed;
};

/* A tick, and the line that it stands in; 0: it is a body of its own. */
struct entry {
    int64_t line;
    struct tick_in *in;
};

/* A line's answer is the tick's own, with the number of the line put before its first member. */
static void put_answer(struct buf *out, const struct entry *e, const struct buf *answer)
{
    if (e->line)
        buf_fmt(out, "{\"line\":%" PRId64 ",", e->line);
    buf_add(out, answer->data + (e->line > 0), answer->len - (e->line > 0));
    if (e->line)
        buf_char(out, '\n');
}

/* What is told is the problem of one tick, not also of those that were tried before or read ahead. */
static void forget_problem(struct call *c)
{
    c->problem = (struct problem){ .arena = c->problem.arena };
}

static int64_t tick_us(const struct tick_in *in)
{
    int64_t us = 0;
    (void)time_text_parse(in->tick_at, &us);
    return us;
}

/* Applies entries from the first one on, as many as follow each other, against the ledger as it is now; again
 * while other runners change it in between. `done` is how many were stored and answered, also when the one
 * behind them fails. */
static enum err apply(struct call *c, const char *deployment_id, const struct entry *entries, size_t count,
                      struct buf *out, struct progress *p, size_t *done)
{
    const size_t start = out->len;
    *done = 0;
    for (int i = 0; i < TRIES; i++) {
        struct ledger l;
        struct buf answer = { .arena = &c->arena };
        enum err failed = OK;
        bool stored = false;
        size_t n = 0;
        forget_problem(c);
        TRY(ledger_load(c, deployment_id, &l));
        if (tick_us(entries[0].in) <= l.last_tick_us) {
            TRY(ledger_replay(c, deployment_id, entries[0].in, &answer));
            put_answer(out, &entries[0], &answer);
            p->replayed++;
            *done = 1;
            return OK;
        }
        for (; n < count && out->len - start < ANSWER_BYTES && tick_us(entries[n].in) > l.last_tick_us; n++) {
            answer.len = 0;
            failed = ledger_apply(&l, entries[n].in, &answer);
            if (failed != OK)
                break;
            put_answer(out, &entries[n], &answer);
        }
        if (n == 0)
            return failed;
        enum err err = ledger_store(&l, &stored);
        if (stored) {
            *done = n;
            p->applied += (int64_t)n;
            return failed;
        }
        out->len = start; /* nothing is acknowledged that is not stored */
        TRY(err);
    }
    return problem_set(&c->problem, ERR_OVERLOADED,
                       "other runners post ticks of this deployment all the time");
}

/* ---- one ---- */

static enum err tick_post(struct call *c)
{
    struct tick_in *in = c->in;
    const struct entry entry = { .in = in };
    struct progress progress = { 0 };
    size_t done;
    return apply(c, in->id, &entry, 1, reply_json(c, 200), &progress, &done);
}

/* ---- many ---- */

struct batch {
    struct entry entries[BATCH_MOST];
    size_t count;
    int64_t line; /* the last one that was read */
    enum err bad; /* why that one is no tick */
    struct problem problem;
    bool end; /* of the body */
};

static enum err read_tick(struct call *c, const char *line, size_t len, struct tick_in **tick)
{
    struct field_input input = {
        .body = line,
        .body_len = len,
        .depth_limit = (int)c->loop->config->max_json_depth,
        .now = c->now,
    };
    *tick = arena_zero(&c->arena, sizeof **tick);
    return field_decode(tick_body_fields, &input, &c->arena, *tick, &c->problem);
}

static void read_batch(struct call *c, struct batch *b)
{
    size_t bytes = 0;
    b->count = 0;
    while (b->count < BATCH_MOST && bytes < BATCH_BYTES) {
        char *line;
        size_t len;
        struct entry *e = &b->entries[b->count];
        b->bad = body_line(c, &line, &len, &b->line);
        if (b->bad == OK && !line) {
            b->end = true;
            return;
        }
        if (b->bad == OK)
            b->bad = read_tick(c, line, len, &e->in);
        if (b->bad != OK) {
            b->problem = c->problem;
            return;
        }
        e->line = b->line;
        b->count++;
        bytes += len;
    }
}

static void put_problem(struct buf *out, struct call *c, enum err err, int64_t line)
{
    buf_fmt(out, "{\"line\":%" PRId64 ",\"problem\":", line);
    problem_json(out, err, &c->problem, c->request_id);
    buf_text(out, "}\n");
}

/* Applies ticks of the batch from `at` on, as many as fit into one statement, and sends what came of them. In
 * memory of its own: the answers can be much larger than the ticks. */
static enum err apply_some(struct call *c, const char *deployment_id, struct batch *b, size_t *at,
                           struct progress *p, enum err *failed)
{
    struct db_step step;
    size_t done;
    call_breathe(c);
    db_step_begin(c, &step);
    struct buf out = { .arena = &c->arena };
    *failed = apply(c, deployment_id, b->entries + *at, b->count - *at, &out, p, &done);
    *at += done;
    if (*failed != OK) {
        b->line = b->entries[*at].line;
        put_problem(&out, c, *failed, b->line);
    }
    enum err sent = stream_write(c, out.data, out.len);
    db_step_end(c, &step);
    return sent;
}

/* The error is that of the client; `failed` is that of line `b->line`, which has been told. */
static enum err apply_batch(struct call *c, const char *deployment_id, struct batch *b, struct progress *p,
                            enum err *failed)
{
    for (size_t at = 0; at < b->count && *failed == OK;)
        TRY(apply_some(c, deployment_id, b, &at, p, failed));
    if (*failed != OK || b->bad == OK)
        return OK;
    struct buf out = { .arena = &c->arena };
    c->problem = b->problem;
    *failed = b->bad;
    put_problem(&out, c, b->bad, b->line);
    return stream_write(c, out.data, out.len);
}

static enum err bulk_post(struct call *c)
{
    const struct tick_in *in = c->in;
    struct ledger found;
    struct progress progress = { 0 };
    struct batch batch = { 0 };
    enum err failed = OK, sent = OK;
    TRY(ledger_load(c, in->id, &found));
    TRY(stream_begin(c, "application/x-ndjson"));
    while (failed == OK && sent == OK && !batch.end) {
        struct db_step step;
        db_step_begin(c, &step);
        read_batch(c, &batch);
        sent = apply_batch(c, in->id, &batch, &progress, &failed);
        db_step_end(c, &step);
    }
    TRY(sent);
    struct buf out = { .arena = &c->arena };
    buf_fmt(&out, "{\"done\":%s,\"applied\":%" PRId64 ",\"replayed\":%" PRId64 ",\"resume_at\":",
            failed == OK ? "true" : "false", progress.applied, progress.replayed);
    buf_fmt(&out, failed == OK ? "null}\n" : "%" PRId64 "}\n", batch.line);
    return stream_write(c, out.data, out.len);
}

static const struct field bulk_fields[] = {
    FIELD(FROM_PATH, KIND_UUID, struct tick_in, id, .required = true),
    END_FIELDS,
};

const struct route tick_routes[] = {
    { POST, "/v1/deployments/{id}/ticks", tick_post, .fields = tick_fields, .in_size = sizeof(struct tick_in),
      .role = ROLE_AGENT, .waits = true },
    { POST, "/v1/deployments/{id}/ticks/bulk", bulk_post, .fields = bulk_fields,
      .in_size = sizeof(struct tick_in), .role = ROLE_AGENT, .waits = true, .lines = true },
    END_ROUTES,
};

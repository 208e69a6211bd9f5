/* Ticks: one at a time, or many in one body. */
#include <inttypes.h>
#include <string.h>

#include "core/base/time_text.h"
#include "db/db.h"
#include "handlers/ledger/ledger.h"
#include "handlers/reflection/reflection.h"
#include "handlers/routes.h"
#include "server/config.h"
#include "server/http/idempotency.h"

enum {
    TRIES = 16,                /* of ticks that others overtake */
    BATCH_MOST = 64,           /* ticks in one statement */
    BATCH_BYTES = 256 * 1024,  /* of lines that are read ahead */
    ANSWER_BYTES = 512 * 1024, /* of answers in one statement: a tick answers with every open trade */
};

/* What came of the ticks up to here. */
struct progress {
    int64_t applied, replayed;
    bool reflection_due; /* by the last of them */
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

/* It can be applied to what is loaded. */
static bool follows(const struct ledger *l, const struct tick_in *in)
{
    const int64_t us = tick_us(in);
    return us > l->session.last_tick_us && us < l->lessons_until_us;
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
        TRY(ledger_load(c, deployment_id, entries[0].in->tick_at, &l));
        if (tick_us(entries[0].in) <= l.session.last_tick_us) {
            TRY(ledger_replay(&l, entries[0].in, &answer, &p->reflection_due));
            put_answer(out, &entries[0], &answer);
            p->replayed++;
            *done = 1;
            return OK;
        }
        for (; n < count && out->len - start < ANSWER_BYTES && follows(&l, entries[n].in); n++) {
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
            p->reflection_due = l.reflection_due;
            return failed;
        }
        out->len = start; /* nothing is acknowledged that is not stored */
        TRY(err);
    }
    return problem_set(&c->problem, ERR_OVERLOADED,
                       "other runners post ticks of this deployment all the time");
}

/* ---- one ---- */

/* The tick is stored, whatever becomes of the reflection: that is told beside it. */
static void put_failure(struct call *c, struct buf *out, enum err err)
{
    const bool another = err == ERR_REFLECTION_RUNNING || err == ERR_TIME_ORDER;
    buf_fmt(out, "{\"outcome\":\"%s\",\"reason\":\"%s\",\"detail\":", another ? "skipped" : "failed",
            err_code(err));
    buf_json_string(out, c->problem.detail ? c->problem.detail : err_title(err));
    buf_char(out, '}');
    forget_problem(c);
}

/* Puts what came of the reflection behind the members of the tick's answer. */
static void reflect_after(struct call *c, const struct tick_in *in, bool due, struct buf *out)
{
    const struct reflection_ask ask = { .deployment_id = in->id,
                                        .as_of = in->tick_at,
                                        .max_trades = REFLECTION_TRADES_MAX };
    out->len--; /* the brace */
    buf_json_key(out, "reflection");
    const size_t start = out->len;
    enum err err = due ? reflection_run(c, &ask, out) : OK;
    if (!due)
        buf_text(out, "null");
    if (err != OK) {
        out->len = start;
        idempotency_failed_beside(c, err);
        put_failure(c, out, err);
    }
    buf_char(out, '}');
}

/* Its answer is made elsewhere: what the reply holds is kept for the Idempotency-Key by the transaction of
 * the reflection, which does not know all of it. */
static enum err tick_post_and_reflect(struct call *c, const struct entry *entry)
{
    struct progress progress = { 0 };
    struct buf out = { .arena = &c->arena };
    size_t done;
    TRY(apply(c, entry->in->id, entry, 1, &out, &progress, &done));
    reflect_after(c, entry->in, progress.reflection_due, &out);
    buf_add(reply_json(c, 200), out.data, out.len);
    return OK;
}

static enum err tick_post(struct call *c)
{
    struct tick_in *in = c->in;
    const struct entry entry = { .in = in };
    struct progress progress = { 0 };
    size_t done;
    if (in->reflect)
        return tick_post_and_reflect(c, &entry);
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
    return field_decode(c->route->line_fields, &input, &c->arena, *tick, &c->problem);
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
    TRY(ledger_load(c, in->id, c->now, &found));
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
      .role = ROLE_AGENT, .waits = true, .models_with = "reflect" },
    { POST, "/v1/deployments/{id}/ticks/bulk", bulk_post, .fields = bulk_fields,
      .in_size = sizeof(struct tick_in), .role = ROLE_AGENT, .waits = true, .lines = true,
      .line_fields = tick_body_fields },
    END_ROUTES,
};

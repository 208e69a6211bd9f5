/* POST /v1/episodic/bulk: one entry per line, embedded and stored in batches. Each line succeeds or fails
 * alone. */
#include <inttypes.h>
#include <string.h>

#include "handlers/episodic/episodic.h"
#include "handlers/routes.h"
#include "server/config.h"

enum {
    BATCH_MAX = 64,           /* lines */
    BATCH_BYTES = 256 * 1024, /* a batch ends with the line that reaches this */
};

struct line {
    int64_t number;
    enum err bad; /* why it was rejected */
    struct problem problem;
    struct episode *episode; /* of the batch */
    bool repeated;           /* an earlier line of the batch has the same entry */
};

struct batch {
    struct arena *arena;
    struct line lines[BATCH_MAX];
    struct episode episodes[BATCH_MAX];
    size_t line_count, count;
    struct episode_rule rule;
    bool end; /* of the body */
};

struct progress {
    int64_t created, duplicates, rejected;
};

/* ---- reading ---- */

static enum err read_entry(struct call *c, const char *text, size_t len, struct arena *arena,
                           struct episode *e)
{
    const struct field_input input = {
        .body = text,
        .body_len = len,
        .depth_limit = (int)c->loop->config->max_json_depth,
        .now = c->now,
    };
    struct episode_in *in = arena_zero(arena, sizeof *in);
    TRY(field_decode(c->route->line_fields, &input, arena, in, &c->problem));
    return episodic_check(c, in, arena, e);
}

/* The same, with an error that is not about the line in *failed. */
static enum err read_allowed(struct call *c, const char *text, size_t len, struct batch *b, enum err *failed)
{
    struct episode *e = &b->episodes[b->count];
    TRY(read_entry(c, text, len, b->arena, e));
    const enum err err = episodic_allow(c, b->arena, &b->rule, e);
    if (err != OK && err != ERR_WRITE_DENIED)
        *failed = err;
    return err;
}

/* Adds the entry that was just read, unless the batch has it already. */
static void add_entry(struct batch *b, struct line *l)
{
    struct episode *e = &b->episodes[b->count];
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->episodes[i].hash, e->hash) == 0) {
            l->episode = &b->episodes[i];
            l->repeated = true;
            return;
        }
    l->episode = e;
    b->count++;
}

static enum err read_batch(struct call *c, struct batch *b)
{
    for (size_t bytes = 0; b->line_count < BATCH_MAX && bytes < BATCH_BYTES;) {
        struct line *l = &b->lines[b->line_count];
        char *text;
        size_t len = 0;
        enum err failed = OK;
        problem_begin(&c->problem, b->arena); /* a body may have millions of bad lines */
        l->bad = call_body_line(c, &text, &len, &l->number);
        if (l->bad == OK && !text) {
            b->end = true;
            return OK;
        }
        if (l->bad != OK && l->bad != ERR_LINE_TOO_LONG)
            return l->bad;
        if (l->bad == OK)
            l->bad = read_allowed(c, text, len, b, &failed);
        if (failed != OK)
            return failed;
        if (l->bad == OK)
            add_entry(b, l);
        l->problem = c->problem;
        b->line_count++;
        bytes += len;
    }
    return OK;
}

/* ---- storing ---- */

static enum err store_tx(struct call *c, void *arg)
{
    struct batch *b = arg;
    return episodic_store(c, b->arena, b->episodes, b->count);
}

static enum err store_batch(struct call *c, struct batch *b)
{
    if (!b->count)
        return OK;
    TRY(episodic_prepare(c, b->arena, b->episodes, b->count));
    return query_tx(c, store_tx, b);
}

/* ---- the response ---- */

static void put_line(struct buf *out, struct call *c, const struct line *l, struct progress *p)
{
    buf_fmt(out, "{\"line\":%" PRId64, l->number);
    if (l->bad != OK) {
        p->rejected++;
        buf_text(out, ",\"status\":\"rejected\",\"error\":");
        problem_json(out, l->bad, &l->problem, c->request_id);
    } else {
        const bool duplicate = l->repeated || l->episode->known;
        *(duplicate ? &p->duplicates : &p->created) += 1;
        buf_fmt(out, ",\"status\":\"%s\",\"id\":\"%s\",\"embedding_status\":\"%s\"",
                duplicate ? "duplicate" : "created", episodic_id(l->episode), episodic_status(l->episode));
    }
    buf_text(out, "}\n");
}

static enum err send_results(struct call *c, const struct batch *b, struct progress *p)
{
    struct buf out = { .arena = b->arena };
    for (size_t i = 0; i < b->line_count; i++)
        put_line(&out, c, &b->lines[i], p);
    return call_stream_write(c, out.data, out.len);
}

/* `failed`: why the service stopped. The client can send the lines from `resume_at` on again; entries are
 * stored once. */
static enum err send_end(struct call *c, const struct progress *p, enum err failed, int64_t resume_at)
{
    struct buf out = { .arena = &c->arena };
    buf_fmt(&out,
            "{\"done\":%s,\"created\":%" PRId64 ",\"duplicates\":%" PRId64 ",\"rejected\":%" PRId64
            ",\"resume_at\":",
            failed == OK ? "true" : "false", p->created, p->duplicates, p->rejected);
    if (failed == OK) {
        buf_text(&out, "null,\"error\":null}\n");
    } else {
        buf_fmt(&out, "%" PRId64 ",\"error\":", resume_at > 0 ? resume_at : 1);
        problem_json(&out, failed, &c->problem, c->request_id);
        buf_text(&out, "}\n");
    }
    return call_stream_write(c, out.data, out.len);
}

/* Processes one batch. Returns an error only if the client has disconnected; any other error is reported in
 * the last line of the response. */
static enum err take_batch(struct call *c, struct arena *arena, struct progress *p, bool *more)
{
    struct batch *b = arena_zero(arena, sizeof *b);
    b->arena = arena;
    enum err failed = read_batch(c, b);
    if (failed == ERR_BAD_REQUEST)
        return failed;
    if (failed == OK) {
        problem_begin(&c->problem, &c->arena);
        failed = store_batch(c, b);
    }
    if (failed == OK)
        TRY(send_results(c, b, p));
    *more = failed == OK && !b->end;
    return *more ? OK : send_end(c, p, failed, b->lines[0].number);
}

static enum err bulk_post(struct call *c)
{
    struct progress progress = { 0 };
    enum err err = call_stream_begin(c, "application/x-ndjson");
    for (bool more = true; err == OK && more;) {
        struct arena step = { 0 };
        call_yield(c);
        err = take_batch(c, &step, &progress, &more);
        problem_begin(&c->problem, &c->arena); /* the last line's ends with the step */
        arena_release(&step);
    }
    return err;
}

const struct route episodic_bulk_routes[] = {
    { POST, "/v1/episodic/bulk", bulk_post, .role = ROLE_RESEARCHER, .waits = true, .lines = true,
      .line_fields = episode_fields },
    END_ROUTES,
};

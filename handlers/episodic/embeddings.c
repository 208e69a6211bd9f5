/* The models that entries, memories and situations have vectors of, and POST /v1/embeddings/rebuild, which
 * makes those that lack a vector of the service's own model. */
#include "core/base/json_put.h"
#include "handlers/episodic/episodic.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/pages.h"
#include "handlers/routes.h"
#include "server/embedder.h"

struct embeddings_in {
    int64_t batch, max;
    const char *include_supplied;
    /* parameters of the statements */
    const char *model, *vectors;
    int64_t dim, limit;
    struct cursor_values cursor;
};

/* clang-format off */
#define E(from, kind, member, ...) FIELD(from, kind, struct embeddings_in, member, __VA_ARGS__)
#define SPACE E(COMPUTED, KIND_LINE, model), E(COMPUTED, KIND_INT, dim)
static const struct field state_fields[] = { SPACE, END_FIELDS };
static const struct field rebuild_fields[] = {
    E(FROM_BODY, KIND_INT, batch, .min = 1, .max = 256, .fallback = "64"),
    E(FROM_BODY, KIND_INT, max, .min = 1, .max = 1000000000),
    E(FROM_BODY, KIND_BOOL, include_supplied, .fallback = "false"),
    SPACE,
    E(COMPUTED, KIND_TEXT, vectors), FIELD_PAGES(struct embeddings_in),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(counted, missing);
COLUMNS(entry, id, question, answer);
COLUMNS(memory, id, text);
COLUMNS(situation, id, summary);
QUERY(embeddings_state, EMBEDDINGS_STATE, state_fields);
QUERY(entries_count, EMBEDDINGS_MISSING_COUNT, rebuild_fields, READS(counted));
QUERY(entries_missing, EMBEDDINGS_MISSING, rebuild_fields, READS(entry));
QUERY(entries_store, EMBEDDINGS_STORE, rebuild_fields);
QUERY(memories_count, MEMORY_VECTORS_MISSING_COUNT, rebuild_fields, READS(counted));
QUERY(memories_missing, MEMORY_VECTORS_MISSING, rebuild_fields, READS(memory));
QUERY(memories_store, MEMORY_VECTORS_STORE, rebuild_fields);
QUERY(situations_count, SITUATIONS_MISSING_COUNT, rebuild_fields, READS(counted));
QUERY(situations_missing, SITUATIONS_MISSING, rebuild_fields, READS(situation));
QUERY(situations_store, SITUATIONS_STORE, rebuild_fields);

static struct embeddings_in *with_space(struct call *c)
{
    const struct embedder_space own = embedder_space(c->loop);
    struct embeddings_in *in = c->in;
    in->model = own.model;
    in->dim = (int64_t)own.dim;
    return in;
}

/* ---- the state ---- */

static enum err embeddings_get(struct call *c)
{
    const struct embeddings_in *in = with_space(c);
    struct rows *r;
    TRY(query_one(c, &embeddings_state, in, NULL, &r));
    struct buf *out = call_reply_json(c, 200);
    buf_char(out, '{');
    json_put_text(out, "model", in->model);
    json_put_int(out, "dim", in->dim);
    json_put_text(out, "kind", embedder_kind(c->loop));
    json_put_bool(out, "available", embedder_available(c->loop));
    rows_members(out, r, 0);
    buf_char(out, '}');
    return OK;
}

/* ---- rebuild ---- */

static const char *entry_text(struct arena *arena, const struct rows *r, int row)
{
    return episodic_embed_text(arena, rows_text(r, row, &entry.question), rows_text(r, row, &entry.answer));
}

static const char *memory_text(struct arena *arena, const struct rows *r, int row)
{
    (void)arena;
    return rows_text(r, row, &memory.text);
}

static const char *situation_text(struct arena *arena, const struct rows *r, int row)
{
    (void)arena;
    return rows_text(r, row, &situation.summary);
}

/* The tables with vectors, in the order in which they are processed. */
static const struct source {
    const struct query *count, *missing, *store;
    const struct column *id;
    const char *(*text)(struct arena *arena, const struct rows *r, int row);
} sources[] = {
    { &entries_count, &entries_missing, &entries_store, &entry.id, entry_text },
    { &memories_count, &memories_missing, &memories_store, &memory.id, memory_text },
    { &situations_count, &situations_missing, &situations_store, &situation.id, situation_text },
};
enum { SOURCES = sizeof sources / sizeof *sources };

struct progress {
    size_t source; /* index of the current source; SOURCES: done */
    int64_t embedded, refused, remaining;
    bool begun;          /* the response has begun */
    struct arena cursor; /* its values */
};

static enum err embed_rows(struct call *c, struct arena *step, struct embeddings_in *in, struct progress *p,
                           const struct source *source, const struct rows *r)
{
    const size_t count = (size_t)rows_count(r);
    struct embedder_item *items = arena_zero(step, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i].id = rows_text(r, (int)i, source->id);
        items[i].text = source->text(step, r, (int)i);
    }
    TRY(embedder_embed_items(&c->task, step, items, count, &in->vectors));
    for (size_t i = 0; i < count; i++)
        p->refused += items[i].rejected;
    return OK;
}

static void next_source(struct embeddings_in *in, struct progress *p)
{
    p->source++;
    in->cursor = (struct cursor_values){ 0 };
}

static enum err begin(struct call *c, struct progress *p)
{
    if (p->begun)
        return OK;
    p->begun = true;
    return call_stream_begin(c, "application/x-ndjson");
}

/* Reads, embeds and stores one batch, and reports it. No connection is held while it is embedded. */
static enum err rebuild_batch(struct call *c, struct arena *step, struct embeddings_in *in,
                              struct progress *p)
{
    const struct source *source = &sources[p->source];
    struct rows *r, *stored;
    in->limit =
        in->max != FIELD_NO_INT && in->max - p->embedded < in->batch ? in->max - p->embedded : in->batch;
    TRY(query_rows(c, source->missing, in, step, &r));
    if (rows_count(r))
        pages_cursor_after(r, rows_count(r) - 1, &p->cursor, &in->cursor);
    if (rows_count(r) < in->limit)
        next_source(in, p);
    if (!rows_count(r))
        return OK;
    TRY(embed_rows(c, step, in, p, source, r));
    TRY(query_rows(c, source->store, in, step, &stored));
    p->embedded += rows_count(stored);
    p->remaining -= rows_count(stored);
    if (in->max != FIELD_NO_INT && p->embedded >= in->max)
        p->source = SOURCES;
    TRY(begin(c, p));
    struct buf out = { .arena = step };
    buf_fmt(&out, "{\"embedded\":%d,\"failed\":%d,\"remaining\":%lld}\n", rows_count(stored),
            rows_count(r) - rows_count(stored), (long long)p->remaining);
    return call_stream_write(c, out.data, out.len);
}

static enum err count_missing(struct call *c, const struct embeddings_in *in, struct progress *p)
{
    struct rows *r;
    p->remaining = 0;
    for (size_t i = 0; i < SOURCES; i++) {
        TRY(query_one(c, sources[i].count, in, NULL, &r));
        p->remaining += row_int(r, 0, &counted.missing, 0);
    }
    return OK;
}

static enum err send_end(struct call *c, const struct progress *p, enum err failed)
{
    struct buf out = { .arena = &c->arena };
    buf_fmt(&out, "{\"done\":%s,\"embedded\":%lld,\"refused\":%lld,\"remaining\":%lld",
            failed == OK ? "true" : "false", (long long)p->embedded, (long long)p->refused,
            (long long)p->remaining);
    if (failed != OK) {
        buf_fmt(&out, ",\"error\":{\"code\":\"%s\",\"detail\":", problem_code(failed));
        buf_json_string(&out, c->problem.detail ? c->problem.detail : problem_title(failed));
        buf_char(&out, '}');
    }
    buf_text(&out, "}\n");
    return call_stream_write(c, out.data, out.len);
}

/* Each batch is its own transaction. After an interruption, the next request continues where this one
 * stopped.
 */
static enum err embeddings_rebuild(struct call *c)
{
    struct embeddings_in *in = with_space(c);
    struct progress p = { 0 };
    enum err err = count_missing(c, in, &p);
    while (err == OK && p.source < SOURCES) {
        struct arena step = { 0 };
        call_yield(c);
        err = rebuild_batch(c, &step, in, &p);
        arena_release(&step);
    }
    in->cursor = (struct cursor_values){ 0 };
    arena_release(&p.cursor);
    if (err != OK && !p.begun)
        return err;
    if (err == OK)
        err = count_missing(c, in, &p); /* others may have stored or deleted some in the meantime */
    TRY(begin(c, &p));
    return send_end(c, &p, err);
}

#define IN(table) INPUT(table, struct embeddings_in), .waits = true

const struct route embeddings_routes[] = {
    { GET, "/v1/embeddings", embeddings_get, IN(state_fields), .role = ROLE_READER },
    { POST, "/v1/embeddings/rebuild", embeddings_rebuild, IN(rebuild_fields), .role = ROLE_AGENT,
      .safe = true, .models = true },
    END_ROUTES,
};

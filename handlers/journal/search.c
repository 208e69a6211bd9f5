/* POST /v1/memories/search: finds memories, theses and lessons (handlers/kit/find.c), renders them for a
 * prompt, and records the retrieval. */
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/list_text.h"
#include "core/base/time_text.h"
#include "core/base/vector.h"
#include "core/journal/render.h"
#include "handlers/journal/journal.h"
#include "handlers/kit/find.h"
#include "handlers/kit/reply.h"
#include "handlers/journal/related.h"
#include "handlers/routes.h"

/* A query, with what it may find. `as_of` is set before the search runs. */
struct memory_search {
    const char *text, *model, *symbol, *deployment_id, *since, *until, *as_of, *agent_name, *model_call_id;
    struct texts vector, kind, status, tags;
    int64_t k, max_tokens;
    struct find find;
};

static const char *const kinds[] = { "note", "proposal", "risk_note", "decision", "thesis", "lesson", NULL };
/* Retracted memories are never found. */
static const char *const statuses[] = { "active",    "open",    "closed",     "proposed",
                                        "validated", "retired", "superseded", NULL };

/* clang-format off */
#define S(kind_, member, ...) FIELD(FROM_BODY, kind_, struct memory_search, member, __VA_ARGS__)
#define QUERY_ROWS \
    S(KIND_TEXT, text, .min = 1, .max = 4000), \
    S(KIND_NUMBERS, vector, .min = 1, .max = VECTOR_MAX), \
    S(KIND_LINE, model, .min = 1, .max = 100), \
    S(KIND_INT, k, .min = 1, .max = 100, .fallback = "5"), \
    S(KIND_INT, max_tokens, .min = RENDER_MIN_TOKENS, .max = 20000, .fallback = "800")
#define FILTER_ROWS \
    S(KIND_TAGS, kind, .min = 1, .max = 6, .choices = kinds), \
    JOURNAL_SYMBOL(FROM_BODY, struct memory_search), \
    S(KIND_TAGS, status, .min = 1, .max = 7, .choices = statuses), \
    S(KIND_TAGS, tags, .min = 1, .max = 16, .item_max = 64), \
    S(KIND_UUID, deployment_id), \
    S(KIND_TIME, since), \
    S(KIND_TIME, until)

static const struct field query_fields[] = { QUERY_ROWS, END_FIELDS };
static const struct field filter_fields[] = { FILTER_ROWS, END_FIELDS };
static const struct field search_fields[] = {
    QUERY_ROWS, FILTER_ROWS,
    S(KIND_TIME, as_of),
    JOURNAL_AUTHOR(struct memory_search),
    FIND_FIELDS(struct memory_search, find),
    END_FIELDS,
};

/* The record of a retrieval: the request as sent, the scores, the selection, and the text as it was given. */
struct record_in {
    const struct memory_search *query, *filters;
    const char *as_of, *candidates, *deployment_id, *symbol, *rendered, *agent_name, *model_call_id;
    struct texts ids;
    int64_t tokens;
};
#define R(kind_, member, ...) FIELD(COMPUTED, kind_, struct record_in, member, __VA_ARGS__)
static const struct field record_fields[] = {
    R(KIND_OBJECT, query, SUB(query_fields, struct memory_search)),
    R(KIND_OBJECT, filters, SUB(filter_fields, struct memory_search)),
    R(KIND_TIME, as_of), R(KIND_TEXT, candidates), R(KIND_UUIDS, ids), R(KIND_UUID, deployment_id), R(KIND_LINE, symbol),
    R(KIND_TEXT, rendered), R(KIND_INT, tokens), R(KIND_LINE, agent_name), R(KIND_LINE, model_call_id),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(instant, as_of, pinned);
COLUMNS(memory, id, kind, status, at, text, symbol, action, side, invalidation, target, horizon, outcome,
        agent_name);
COLUMNS(recorded, id);
#define MEMORY(name, statement, columns) QUERY(name, statement, search_fields, READS(columns))
MEMORY(memory_lexemes, MEMORY_LEXEMES, find_lexeme);
MEMORY(memory_vector_count, MEMORY_VECTOR_COUNT, find_vectors);
MEMORY(memory_newest, MEMORY_NEWEST, find_candidate);
MEMORY(memory_exact, MEMORY_EXACT, find_candidate);
MEMORY(nearest_384, MEMORY_NEAREST_384, find_candidate);
MEMORY(nearest_768, MEMORY_NEAREST_768, find_candidate);
MEMORY(nearest_1024, MEMORY_NEAREST_1024, find_candidate);
MEMORY(nearest_1536, MEMORY_NEAREST_1536, find_candidate);
MEMORY(nearest_3072, MEMORY_NEAREST_3072, find_candidate);
MEMORY(nearest_4000, MEMORY_NEAREST_4000, find_candidate);
MEMORY(memory_other_dim, MEMORY_OTHER_DIM, find_other);
MEMORY(memory_found, MEMORY_FOUND, memory);
static const struct find_store store = {
    .lexemes = &memory_lexemes,
    .vector_count = &memory_vector_count,
    .newest = &memory_newest,
    .exact = &memory_exact,
    .nearest = { &nearest_384, &nearest_768, &nearest_1024, &nearest_1536, &nearest_3072, &nearest_4000 },
    .other_dim = &memory_other_dim,
    .found = &memory_found,
    .found_id = &memory.id,
};
QUERY(search_instant, MEMORY_SEARCH_INSTANT, search_fields, READS(instant),
      .missing = "deployment {deployment_id}");
QUERY(retrieval_record, MEMORY_RETRIEVAL_RECORD, record_fields, READS(recorded),
      .missing = "deployment {deployment_id}");

/* ---- the request ---- */

/* Reports all faults at once. */
static enum err check(struct call *c, const struct memory_search *s)
{
    if (s->vector.count && !s->model)
        (void)problem_field(&c->problem, "model", FAULT_REQUIRED,
                            "is required with a vector: vectors of two models are never compared");
    if (!s->vector.count && s->model)
        (void)problem_field(&c->problem, "vector", FAULT_REQUIRED, "is required with a model");
    return c->problem.count ? ERR_INVALID_FIELDS : OK;
}

static bool is_filtered(const struct memory_search *s)
{
    return s->as_of || s->kind.count || s->symbol || s->status.count || s->tags.count || s->deployment_id ||
           s->since || s->until;
}

/* Without as_of, a deployment is searched at its own time, which for a simulation is its last tick. Its open
 * theses on the symbol are always among the hits: this is the search that the thesis check expects. */
static enum err set_instant(struct call *c, struct memory_search *s)
{
    struct rows *r;
    if (s->deployment_id) {
        TRY(query_one(c, &search_instant, s, NULL, &r));
        s->as_of = rows_time(r, 0, &instant.as_of, &c->arena);
        s->find.pinned.items =
            list_text_split(&c->arena, rows_text(r, 0, &instant.pinned), &s->find.pinned.count);
    } else if (!s->as_of) {
        s->as_of = c->now;
    }
    return OK;
}

static enum err make_query(struct call *c, struct memory_search *s)
{
    s->find.k = s->k;
    s->find.query_text = s->text;
    if (s->vector.count)
        return find_by_vector(c, &s->find, &s->vector, s->model);
    return s->text ? find_by_text(c, &s->find, s->text) : OK;
}

/* ---- the text ---- */

static struct render_memory hit_of(const struct rows *r, int row)
{
    return (struct render_memory){
        .id = rows_text(r, row, &memory.id),
        .kind = rows_text(r, row, &memory.kind),
        .status = rows_text(r, row, &memory.status),
        .text = rows_text(r, row, &memory.text),
        .at_us = row_time_us(r, row, &memory.at, 0),
        .action = rows_text(r, row, &memory.action),
        .side = rows_text(r, row, &memory.side),
        .symbol = rows_text(r, row, &memory.symbol),
        .agent_name = rows_text(r, row, &memory.agent_name),
        .invalidation = rows_text(r, row, &memory.invalidation),
        .target = rows_text(r, row, &memory.target),
        .horizon = rows_text(r, row, &memory.horizon),
        .outcome = rows_text(r, row, &memory.outcome),
    };
}

static struct render_result render_hits(struct buf *text, const struct memory_search *s)
{
    const struct find *f = &s->find;
    struct render_memory *hits = arena_alloc(text->arena, (f->hit_count + 1) * sizeof *hits);
    for (size_t i = 0; i < f->hit_count; i++)
        hits[i] = hit_of(f->entries, f->hits[i].row);
    return render_memories(text, hits, f->hit_count, (size_t)s->max_tokens);
}

/* ---- the response ---- */

static void put_items(struct buf *out, const struct find *f)
{
    buf_json_key(out, "items");
    buf_char(out, '[');
    for (size_t i = 0; i < f->hit_count; i++) {
        buf_text(out, i ? ",{" : "{");
        rows_members(out, f->entries, f->hits[i].row);
        find_put_scores(out, f->hits[i].score, FIND_PARTS);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_response(struct buf *out, const struct memory_search *s, const struct buf *text,
                         const struct render_result *rendered, const char *retrieval_id)
{
    int64_t as_of_us = 0;
    (void)time_text_parse(s->as_of, &as_of_us);
    buf_char(out, '{');
    json_put_text(out, "retrieval_id", retrieval_id);
    json_put_time(out, "as_of", as_of_us);
    json_put_text(out, "deployment_id", s->deployment_id);
    find_put_query(out, &s->find);
    put_items(out, &s->find);
    buf_json_key(out, "rendered");
    buf_json_text(out, text->data, text->len);
    json_put_int(out, "tokens", (int64_t)rendered->tokens);
    json_put_int(out, "shown", (int64_t)rendered->shown);
    buf_char(out, '}');
}

/* Records the retrieval and adds the response. */
static enum err record(struct call *c, struct buf *out, const struct memory_search *s)
{
    struct buf text = { .arena = &c->arena };
    const struct render_result rendered = render_hits(&text, s);
    const struct record_in values = {
        .query = s,
        .filters = s,
        .as_of = s->as_of,
        .candidates = find_candidates_json(&c->arena, &s->find, FIND_PARTS),
        .deployment_id = s->deployment_id,
        .symbol = s->symbol,
        .rendered = buf_string(&text),
        .agent_name = s->agent_name,
        .model_call_id = s->model_call_id,
        .ids = s->find.ids,
        .tokens = (int64_t)rendered.tokens,
    };
    struct rows *r;
    TRY(query_one(c, &retrieval_record, &values, NULL, &r));
    put_response(out, s, &text, &rendered, rows_text(r, 0, &recorded.id));
    return OK;
}

/* The response is made in the transaction, which stores it with the record for retries. */
static enum err record_tx(struct call *c, void *arg)
{
    struct buf out = { .arena = &c->arena };
    TRY(record(c, &out, arg));
    buf_add(call_reply_json(c, 200), out.data, out.len);
    return OK;
}

/* ---- for other resources ---- */

enum err related_find(struct call *c, const struct related_in *in, struct memory_search **search)
{
    struct memory_search *s = arena_zero(&c->arena, sizeof *s);
    s->text = in->text;
    s->as_of = in->as_of;
    s->deployment_id = in->deployment_id;
    s->k = in->k;
    s->max_tokens = in->max_tokens;
    s->find.filtered = is_filtered(s);
    TRY(set_instant(c, s));
    TRY(make_query(c, s));
    TRY(find_run(c, &store, s, &s->find));
    *search = s;
    return OK;
}

enum err related_put(struct call *c, struct buf *out, const struct memory_search *s)
{
    return record(c, out, s);
}

void related_end(struct call *c, const struct memory_search *s)
{
    journal_stored(c, false);
    reply_lacks(c, s->find.pending);
}

/* ---- the route ---- */

static enum err memory_search(struct call *c)
{
    struct memory_search *s = c->in;
    TRY(check(c, s));
    s->find.filtered = is_filtered(s);
    TRY(set_instant(c, s));
    TRY(make_query(c, s));
    TRY(find_run(c, &store, s, &s->find));
    TRY(query_tx(c, record_tx, s));
    related_end(c, s);
    return OK;
}

const struct route memory_search_routes[] = {
    { POST, "/v1/memories/search", memory_search, INPUT(search_fields, struct memory_search),
      .role = ROLE_READER, .waits = true, .models = true },
    END_ROUTES,
};

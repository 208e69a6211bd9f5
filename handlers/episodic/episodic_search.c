/* POST /v1/episodic/search: checks the request, makes the query from a text, a vector or an entry, runs it
 * (episodic_find.c), records the retrieval if asked to, and replies. */
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/vector.h"
#include "core/episodic/provenance.h"
#include "handlers/episodic/episodic.h"
#include "handlers/episodic/episodic_find.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/embedder.h"

enum { RECORDED_MAX = 100 }; /* candidates in the record of a retrieval */

/* clang-format off */
#define S(kind, member, ...) FIELD(FROM_BODY, kind, struct episodic_search, member, __VA_ARGS__)
#define QUERY_ROWS \
    S(KIND_TEXT, text, .min = 1, .max = 4000), \
    S(KIND_NUMBERS, vector, .min = 1, .max = VECTOR_MAX), \
    S(KIND_LINE, model, .min = 1, .max = 100), \
    S(KIND_UUID, id), \
    S(KIND_CHOICE, mode, .choices = mode_names, .fallback = "hybrid"), \
    S(KIND_INT, k, .min = 1, .max = 100, .fallback = "5")
#define FILTER_ROWS \
    S(KIND_LINE, ticker, .min = 1, .max = 64), \
    S(KIND_LINE, task_type, .min = 1, .max = 64), \
    S(KIND_CHOICE, source, .choices = provenance_names), \
    S(KIND_NUMBER, min_confidence, .min = 0, .max = 1), \
    S(KIND_TIME, since), \
    S(KIND_TIME, until), \
    REGIME_FIELD(struct episodic_search, regime), \
    S(KIND_BOOL, regime_only, .fallback = "false"), \
    S(KIND_NUMBER, regime_penalty, .min = 0, .max = 1, .fallback = "0.1")

static const char *const mode_names[] = { "hybrid", "vector", "text", NULL };
static const struct field query_fields[] = { QUERY_ROWS, END_FIELDS };
static const struct field filter_fields[] = { FILTER_ROWS, END_FIELDS };
#define P(kind, member) FIELD(COMPUTED, kind, struct episodic_search, member)
const struct field episodic_search_fields[] = {
    QUERY_ROWS, FILTER_ROWS,
    S(KIND_TIME, as_of),
    S(KIND_BOOL, record, .fallback = "false"),
    P(KIND_TEXT, query_text), P(KIND_TEXT, query_vector), P(KIND_LINE, query_model), P(KIND_INT, query_dim),
    P(KIND_INT, width), P(KIND_INT, max_compared), P(KIND_INT, max_candidates), P(KIND_INT, max_visited),
    P(KIND_INT, max_word_matches), P(KIND_INT, max_sampled), P(KIND_INT, max_pending),
    P(KIND_TEXT, word_query), P(KIND_TEXTS, lexemes), P(KIND_TEXTS, idfs), P(KIND_UUIDS, ids),
    END_FIELDS,
};

/* The record of a retrieval: the request as sent, the scores and the selection. */
struct record_in {
    const struct episodic_search *query, *filters;
    const char *as_of, *candidates;
    struct texts ids;
};
#define R(kind, member, ...) FIELD(COMPUTED, kind, struct record_in, member, __VA_ARGS__)
static const struct field record_fields[] = {
    R(KIND_OBJECT, query, SUB(query_fields, struct episodic_search)),
    R(KIND_OBJECT, filters, SUB(filter_fields, struct episodic_search)),
    R(KIND_TIME, as_of), R(KIND_TEXT, candidates), R(KIND_UUIDS, ids),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(similar, question, vector, model, dim);
COLUMNS(recorded, id);
QUERY(similar_to, EPISODIC_SIMILAR_TO, episodic_search_fields, READS(similar));
QUERY(retrieval_record, RETRIEVAL_RECORD, record_fields, READS(recorded));

/* ---- the request ---- */

static void refuse_if(struct call *c, bool bad, const char *field, enum fault fault, const char *why)
{
    if (bad)
        (void)problem_field(&c->problem, field, fault, "%s", why);
}

/* Reports all faults at once. */
static enum err check(struct call *c, const struct episodic_search *s)
{
    const bool vector = s->vector.count;
    refuse_if(c, !s->text && !vector && !s->id, "text", FAULT_REQUIRED,
              "a search needs a text, a vector with its model, or the id of an entry");
    refuse_if(c, s->id && s->text, "id", FAULT_NOT_TOGETHER, "cannot be given together with a text");
    refuse_if(c, s->id && vector, "id", FAULT_NOT_TOGETHER, "cannot be given together with a vector");
    refuse_if(c, vector && !s->model, "model", FAULT_REQUIRED,
              "is required with a vector: vectors of two models are never compared");
    refuse_if(c, !vector && s->model, "vector", FAULT_REQUIRED, "is required with a model");
    refuse_if(c, strcmp(s->mode, "text") == 0 && vector && !s->text, "text", FAULT_REQUIRED,
              "is required in the mode text");
    refuse_if(c, field_is_true(s->regime_only) && !s->regime.count, "regime", FAULT_REQUIRED,
              "is required with regime_only");
    return c->problem.count ? ERR_INVALID_FIELDS : OK;
}

/* ---- the query ---- */

static void set_vector(struct call *c, struct episodic_search *s, const float *vector, size_t dim,
                       const char *model)
{
    struct buf out = { .arena = &c->arena };
    vector_array(&out, vector, dim);
    s->query_vector = buf_string(&out);
    s->query_model = model;
    s->query_dim = (int64_t)dim;
}

/* Falls back to words, unless the mode is `vector`. */
static enum err without_vector(struct episodic_search *s, const char *why)
{
    if (!s->query_text)
        return ERR_EMBEDDER_UNAVAILABLE;
    s->degraded = why;
    return OK;
}

static enum err query_from_text(struct call *c, struct episodic_search *s)
{
    const struct embedder_space own = embedder_space(c->loop);
    float *v = arena_alloc(&c->arena, own.dim * sizeof *v);
    enum err err = embedder_embed_one(&c->task, s->text, v);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        return without_vector(s, "embedder_unavailable");
    TRY(err);
    set_vector(c, s, v, own.dim, own.model);
    return OK;
}

static enum err query_from_vector(struct call *c, struct episodic_search *s)
{
    const float *v;
    TRY(episodic_read_vector(c, &c->arena, "vector", &s->vector, s->model, &v));
    set_vector(c, s, v, s->vector.count, s->model);
    return OK;
}

static enum err query_from_entry(struct call *c, struct episodic_search *s, bool by_vector, bool by_words)
{
    struct rows *r;
    TRY(query_rows(c, &similar_to, s, NULL, &r));
    if (!rows_count(r))
        return problem_field(&c->problem, "id", FAULT_UNKNOWN_REFERENCE, "there is no entry %s", s->id);
    if (by_words)
        s->query_text = rows_text(r, 0, &similar.question);
    if (!by_vector)
        return OK;
    s->query_vector = rows_text(r, 0, &similar.vector);
    s->query_model = rows_text(r, 0, &similar.model);
    s->query_dim = row_int(r, 0, &similar.dim, 0);
    return s->query_vector ? OK : without_vector(s, "no_vector");
}

static enum err make_query(struct call *c, struct episodic_search *s)
{
    const bool by_vector = strcmp(s->mode, "text") != 0, by_words = strcmp(s->mode, "vector") != 0;
    if (s->id)
        return query_from_entry(c, s, by_vector, by_words);
    if (by_words)
        s->query_text = s->text;
    if (!by_vector)
        return OK;
    return s->vector.count ? query_from_vector(c, s) : query_from_text(c, s);
}

/* ---- the response ---- */

/* A score in millionths, with six decimal places. */
static void put_score(struct buf *out, const char *key, int64_t score)
{
    const int64_t size = score < 0 ? -score : score;
    buf_json_key(out, key);
    buf_fmt(out, "%s%lld.%06lld", score < 0 ? "-" : "", (long long)(size / 1000000),
            (long long)(size % 1000000));
}

static void put_scores(struct buf *out, const struct fusion_hit *h)
{
    put_score(out, "score", h->score);
    buf_json_key(out, "parts");
    buf_char(out, '{');
    if (h->has_cosine)
        put_score(out, "cosine", h->cosine_part);
    else
        json_put_raw(out, "cosine", NULL);
    put_score(out, "text", h->text_part);
    put_score(out, "regime_penalty", h->regime_part);
    buf_char(out, '}');
}

static void put_candidates(struct buf *out, const struct episodic_search *s)
{
    buf_char(out, '[');
    for (size_t i = 0; i < s->candidate_count && i < RECORDED_MAX; i++) {
        buf_text(out, i ? ",{" : "{");
        json_put_text(out, "id", s->candidates[i].id);
        put_scores(out, &s->candidates[i]);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_items(struct buf *out, const struct episodic_search *s)
{
    buf_json_key(out, "items");
    buf_char(out, '[');
    for (size_t i = 0; i < s->hit_count; i++) {
        buf_text(out, i ? ",{" : "{");
        rows_members(out, s->entries, s->hits[i].row);
        put_scores(out, s->hits[i].score);
        json_put_raw(out, "regime_mismatch", s->hits[i].regime_mismatch);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_response(struct buf *out, const struct episodic_search *s, const char *retrieval_id)
{
    buf_char(out, '{');
    json_put_text(out, "mode", s->mode);
    json_put_text(out, "model", s->query_model);
    json_put_raw(out, "exact", !s->query_vector ? NULL : s->exact ? "true" : "false");
    json_put_text(out, "degraded", s->degraded);
    json_put_int(out, "pending", s->pending);
    put_items(out, s);
    json_put_text(out, "retrieval_id", retrieval_id);
    buf_char(out, '}');
}

static bool is_recorded(const struct call *c)
{
    const struct episodic_search *s = c->in;
    return field_is_true(s->record);
}

/* The response is made in the transaction, which stores it with the record for retries. */
static enum err record_tx(struct call *c, void *arg)
{
    const struct episodic_search *s = arg;
    struct buf candidates = { .arena = &c->arena };
    struct rows *r;
    put_candidates(&candidates, s);
    const struct record_in values = { s, s, s->as_of, buf_string(&candidates), s->ids };
    TRY(query_one(c, &retrieval_record, &values, NULL, &r));
    put_response(call_reply_json(c, 200), s, rows_text(r, 0, &recorded.id));
    return OK;
}

static enum err episodic_search(struct call *c)
{
    struct episodic_search *s = c->in;
    TRY(check(c, s));
    s->historical = s->as_of;
    if (!s->as_of)
        s->as_of = c->now;
    TRY(make_query(c, s));
    TRY(episodic_find_run(c, s));
    if (is_recorded(c))
        TRY(query_tx(c, record_tx, s));
    else
        put_response(call_reply_json(c, 200), s, NULL);
    reply_lacks(c, s->pending);
    return OK;
}

const struct route episodic_search_routes[] = {
    { POST, "/v1/episodic/search", episodic_search, INPUT(episodic_search_fields, struct episodic_search),
      .role = ROLE_READER, .waits = true, .safe = true, .stores = is_recorded, .models = true },
    END_ROUTES,
};

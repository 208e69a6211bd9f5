/* POST /v1/episodic/search: checks the request, makes the query from a text, a vector or an entry, runs it
 * (handlers/kit/find.c), records the retrieval if asked to, and replies. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/vector.h"
#include "core/episodic/provenance.h"
#include "handlers/episodic/episodic.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/find.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"

struct episodic_search {
    /* the request; as_of is the current time if the caller gave none */
    const char *text, *model, *id, *mode, *ticker, *task_type, *source, *min_confidence, *since, *until,
        *regime_only, *regime_penalty, *as_of, *record;
    struct texts vector;
    struct objects regime; /* of struct regime_in */
    int64_t k;
    struct find find;
};

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
static const struct field episodic_search_fields[] = {
    QUERY_ROWS, FILTER_ROWS,
    S(KIND_TIME, as_of),
    S(KIND_BOOL, record, .fallback = "false"),
    FIND_FIELDS(struct episodic_search, find),
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
COLUMNS(entry, id);
#define EPISODIC(name, statement, columns) QUERY(name, statement, episodic_search_fields, READS(columns))
EPISODIC(episodic_lexemes, EPISODIC_LEXEMES, find_lexeme);
EPISODIC(vector_count, EPISODIC_VECTOR_COUNT, find_vectors);
EPISODIC(episodic_exact, EPISODIC_EXACT, find_candidate);
EPISODIC(nearest_384, EPISODIC_NEAREST_384, find_candidate);
EPISODIC(nearest_768, EPISODIC_NEAREST_768, find_candidate);
EPISODIC(nearest_1024, EPISODIC_NEAREST_1024, find_candidate);
EPISODIC(nearest_1536, EPISODIC_NEAREST_1536, find_candidate);
EPISODIC(nearest_3072, EPISODIC_NEAREST_3072, find_candidate);
EPISODIC(nearest_4000, EPISODIC_NEAREST_4000, find_candidate);
EPISODIC(other_dim, EPISODIC_OTHER_DIM, find_other);
EPISODIC(episodic_found, EPISODIC_FOUND, entry);
static const struct find_store store = {
    .lexemes = &episodic_lexemes,
    .vector_count = &vector_count,
    .exact = &episodic_exact,
    .nearest = { &nearest_384, &nearest_768, &nearest_1024, &nearest_1536, &nearest_3072, &nearest_4000 },
    .other_dim = &other_dim,
    .found = &episodic_found,
    .found_id = &entry.id,
};
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

static enum err query_from_entry(struct call *c, struct episodic_search *s, bool by_vector, bool by_words)
{
    struct rows *r;
    TRY(query_rows(c, &similar_to, s, NULL, &r));
    if (!rows_count(r))
        return problem_field(&c->problem, "id", FAULT_UNKNOWN_REFERENCE, "there is no entry %s", s->id);
    if (by_words)
        s->find.query_text = rows_text(r, 0, &similar.question);
    if (!by_vector)
        return OK;
    s->find.query_vector = rows_text(r, 0, &similar.vector);
    s->find.query_model = rows_text(r, 0, &similar.model);
    s->find.query_dim = row_int(r, 0, &similar.dim, 0);
    return s->find.query_vector ? OK : find_without_vector(&s->find, "no_vector");
}

static enum err make_query(struct call *c, struct episodic_search *s)
{
    const bool by_vector = strcmp(s->mode, "text") != 0, by_words = strcmp(s->mode, "vector") != 0;
    if (s->id)
        return query_from_entry(c, s, by_vector, by_words);
    if (by_words)
        s->find.query_text = s->text;
    if (!by_vector)
        return OK;
    return s->vector.count ? find_by_vector(c, &s->find, &s->vector, s->model)
                           : find_by_text(c, &s->find, s->text);
}

static bool is_filtered(const struct episodic_search *s)
{
    return s->as_of || s->ticker || s->task_type || s->source || s->min_confidence || s->since || s->until ||
           field_is_true(s->regime_only);
}

/* ---- the response ---- */

static void put_items(struct buf *out, const struct find *f)
{
    buf_json_key(out, "items");
    buf_char(out, '[');
    for (size_t i = 0; i < f->hit_count; i++) {
        const struct fusion_hit *score = f->hits[i].score;
        buf_text(out, i ? ",{" : "{");
        rows_members(out, f->entries, f->hits[i].row);
        find_put_scores(out, score, FIND_PARTS_WITH_REGIME);
        json_put_raw(out, "regime_mismatch",
                     rows_text(f->components, (int)score->row, &find_candidate.mismatch));
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_response(struct buf *out, const struct episodic_search *s, const char *retrieval_id)
{
    buf_char(out, '{');
    json_put_text(out, "mode", s->mode);
    find_put_query(out, &s->find);
    put_items(out, &s->find);
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
    const char *candidates = find_candidates_json(&c->arena, &s->find, FIND_PARTS_WITH_REGIME);
    const struct record_in values = { s, s, s->as_of, candidates, s->find.ids };
    struct rows *r;
    TRY(query_one(c, &retrieval_record, &values, NULL, &r));
    put_response(call_reply_json(c, 200), s, rows_text(r, 0, &recorded.id));
    return OK;
}

static enum err episodic_search(struct call *c)
{
    struct episodic_search *s = c->in;
    TRY(check(c, s));
    s->find.k = s->k;
    s->find.filtered = is_filtered(s);
    s->find.regime_penalty = s->regime.count ? strtod(s->regime_penalty, NULL) : 0;
    if (!s->as_of)
        s->as_of = c->now;
    TRY(make_query(c, s));
    TRY(find_run(c, &store, s, &s->find));
    if (is_recorded(c))
        TRY(query_tx(c, record_tx, s));
    else
        put_response(call_reply_json(c, 200), s, NULL);
    reply_lacks(c, s->find.pending);
    return OK;
}

const struct route episodic_search_routes[] = {
    { POST, "/v1/episodic/search", episodic_search, INPUT(episodic_search_fields, struct episodic_search),
      .role = ROLE_READER, .waits = true, .safe = true, .stores = is_recorded, .models = true },
    END_ROUTES,
};

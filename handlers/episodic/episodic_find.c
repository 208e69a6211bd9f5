/* Finding entries of the episodic memory: candidates by meaning and by words, ranked together. */
#include "handlers/episodic/episodic_find.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/vector.h"
#include "handlers/episodic/episodic.h"
#include "handlers/kit/row.h"
#include "server/embedder.h"

enum {
    /* At most so many vectors are compared one by one. With a filter the index has to pass by what does not
     * fit, and may miss what does: until then comparing is quicker (measured at 50,000 of 1,536 dimensions: 8
     * µs each, against 30 µs for each that the index passes by). */
    MOST_COMPARED = 1000,
    MOST_COMPARED_FILTERED = 5000,
    ALL = 2000000000,
    MOST_FOLLOWED = 5000, /* vectors that the index may pass by before all that fit are compared after all */
    LEAST_NEAR = 50,      /* candidates by meaning: so many, or so many for each that is wanted */
    NEAR_EACH = 4,
    REGIME_TIMES = 4, /* more of them where the index knows nothing of the regime that ranks them */
    MOST_WORDED = 1000,
    MOST_SAMPLED = 1000,
    MOST_PENDING = 10000, /* are counted */
    MOST_LEXEMES = 32,
};

/* clang-format off */
#define F(kind, member, ...) FIELD(COMPUTED, kind, struct finding, member, __VA_ARGS__)
static const struct field finding_fields[] = {
    F(KIND_TEXT, words), F(KIND_TEXT, direction), F(KIND_LINE, space), F(KIND_INT, dim),
    F(KIND_TIME, as_of), F(KIND_LINE, ticker), F(KIND_LINE, task_type), F(KIND_CHOICE, source),
    F(KIND_NUMBER, min_confidence), F(KIND_TIME, since), F(KIND_TIME, until), F(KIND_UUID, id),
    F(KIND_BOOL, regime_only), F(KIND_NUMBER, regime_penalty), F(KIND_MAP, regime, SUB(regime_fields, struct regime_in)),
    F(KIND_INT, width), F(KIND_INT, most_compared), F(KIND_INT, most_near), F(KIND_INT, most_followed),
    F(KIND_INT, most_worded), F(KIND_INT, most_sampled), F(KIND_INT, most_pending),
    F(KIND_TEXT, opening), F(KIND_TEXTS, lexemes), F(KIND_TEXTS, idfs), F(KIND_UUIDS, ids),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(lexeme, query, holding, sampled);
COLUMNS(candidate, id, created_us, cosine, weight, covered, shared, differing, mismatch, matching, pending);
COLUMNS(vectors, n);
COLUMNS(other, dim);
COLUMNS(entry, id);
QUERY(episodic_like, EPISODIC_LIKE, finding_fields, READS(episodic_similar_row));
QUERY(episodic_lexemes, EPISODIC_LEXEMES, finding_fields, READS(lexeme));
QUERY(episodic_many, EPISODIC_MANY, finding_fields, READS(vectors));
QUERY(episodic_exact, EPISODIC_EXACT, finding_fields, READS(candidate));
QUERY(nearest_384, EPISODIC_NEAREST_384, finding_fields, READS(candidate));
QUERY(nearest_768, EPISODIC_NEAREST_768, finding_fields, READS(candidate));
QUERY(nearest_1024, EPISODIC_NEAREST_1024, finding_fields, READS(candidate));
QUERY(nearest_1536, EPISODIC_NEAREST_1536, finding_fields, READS(candidate));
QUERY(nearest_3072, EPISODIC_NEAREST_3072, finding_fields, READS(candidate));
QUERY(nearest_4000, EPISODIC_NEAREST_4000, finding_fields, READS(candidate));
QUERY(episodic_other_dim, EPISODIC_OTHER_DIM, finding_fields, READS(other));
QUERY(episodic_found, EPISODIC_FOUND, finding_fields, READS(entry));

/* The index of each column has a query of its own. */
static const struct {
    int64_t width;
    const struct query *query;
} nearest[] = {
    { 384, &nearest_384 },   { 768, &nearest_768 },   { 1024, &nearest_1024 },
    { 1536, &nearest_1536 }, { 3072, &nearest_3072 }, { 4000, &nearest_4000 },
};

/* ---- the vector ---- */

static void set_direction(struct call *c, struct finding *f, const float *v, size_t dim, const char *model)
{
    struct buf out = { .arena = &c->arena };
    for (size_t i = 0; i < dim; i++)
        buf_fmt(&out, i ? ",%.9g" : "{%.9g", (double)v[i]);
    buf_char(&out, '}');
    f->direction = buf_string(&out);
    f->space = model;
    f->dim = (int64_t)dim;
}

enum err episodic_find_embed(struct call *c, struct finding *f, const char *text)
{
    const struct embedder_space own = embedder_space(c->loop);
    float *v = arena_alloc(&c->arena, own.dim * sizeof *v);
    TRY(embedder_embed_one(&c->task, text, v));
    set_direction(c, f, v, own.dim, own.model);
    return OK;
}

enum err episodic_find_set_vector(struct call *c, struct finding *f, const struct texts *vector,
                                  const char *model)
{
    const struct embedder_space own = embedder_space(c->loop);
    const size_t dim = vector->count;
    if (strcmp(model, own.model) == 0 && dim != own.dim)
        return problem_field(&c->problem, "vector", FAULT_INVALID_VECTOR,
                             "has %zu numbers; vectors of %s have %zu", dim, own.model, own.dim);
    float *v = arena_alloc(&c->arena, dim * sizeof *v);
    for (size_t i = 0; i < dim; i++)
        v[i] = strtof(vector->items[i], NULL);
    if (!vector_normalise(v, dim))
        return problem_field(&c->problem, "vector", FAULT_INVALID_VECTOR,
                             "must have a length that is above zero and finite");
    set_direction(c, f, v, dim, model);
    f->given = true;
    return OK;
}

enum err episodic_find_similar_row(struct call *c, const char *id, const char *as_of, struct rows **rows)
{
    const struct finding f = { .id = id, .as_of = as_of };
    return query_rows(c, &episodic_like, &f, NULL, rows);
}

void episodic_find_set_row(struct finding *f, const struct rows *r)
{
    f->direction = rows_text(r, 0, &episodic_similar_row.direction);
    f->space = rows_text(r, 0, &episodic_similar_row.model);
    f->dim = row_int(r, 0, &episodic_similar_row.dim, 0);
}

/* ---- the words ---- */

static void take_lexemes(struct call *c, struct finding *f, const struct fusion_lexeme *lexemes, size_t count)
{
    const char **texts = arena_alloc(&c->arena, (count + 1) * sizeof *texts),
               **idfs = arena_alloc(&c->arena, (count + 1) * sizeof *idfs);
    struct buf opening = { .arena = &c->arena };
    for (size_t i = 0; i < count; i++) {
        texts[i] = lexemes[i].text;
        idfs[i] = arena_fmt(&c->arena, "%.17g", lexemes[i].idf);
        if (lexemes[i].opens)
            buf_fmt(&opening, "%s%s", opening.len ? " | " : "", lexemes[i].text);
    }
    f->lexemes = (struct texts){ count, texts };
    f->idfs = (struct texts){ count, idfs };
    f->opening = buf_string(&opening);
}

static enum err weigh_words(struct call *c, struct finding *f)
{
    struct rows *r;
    TRY(query_rows(c, &episodic_lexemes, f, NULL, &r));
    const size_t count = (size_t)rows_count(r);
    if (!count)
        return OK; /* nothing but words that stand in every text */
    struct fusion_lexeme *lexemes = arena_zero(&c->arena, count * sizeof *lexemes);
    for (size_t i = 0; i < count; i++) {
        lexemes[i].text = rows_text(r, (int)i, &lexeme.query);
        lexemes[i].holding = row_int(r, (int)i, &lexeme.holding, 0);
    }
    const int64_t sampled = row_int(r, 0, &lexeme.sampled, 0);
    take_lexemes(c, f, lexemes, fusion_choose(lexemes, count, sampled, sampled < MOST_SAMPLED, MOST_LEXEMES));
    return OK;
}

/* ---- the candidates ---- */

static int64_t matching(const struct rows *r)
{
    return rows_count(r) ? row_int(r, 0, &candidate.matching, 0) : 0;
}

static enum err find_exactly(struct call *c, struct finding *f, int64_t most, struct rows **r)
{
    f->most_compared = most;
    f->exact = true;
    return query_rows(c, &episodic_exact, f, NULL, r);
}

/* There are more that fit than it was asked for: when it gives fewer it has lost some, and all are compared.
 */
static enum err find_by_index(struct call *c, struct finding *f, struct rows **r)
{
    size_t i = 0;
    while (nearest[i].width != f->width)
        i++;
    f->exact = false;
    TRY(query_rows(c, nearest[i].query, f, NULL, r));
    return matching(*r) < f->most_near ? find_exactly(c, f, ALL, r) : OK;
}

static bool is_filtered(const struct finding *f)
{
    return f->past || f->ticker || f->task_type || f->source || f->min_confidence || f->since || f->until ||
           (f->regime_only && strcmp(f->regime_only, "true") == 0);
}

/* Where nothing is filtered, a count of the vectors tells at once that they are too many to be compared one
 * by one. */
static enum err are_many(struct call *c, struct finding *f, int64_t most, bool *many)
{
    struct rows *r;
    *many = false;
    if (!f->direction || is_filtered(f))
        return OK;
    f->most_compared = most;
    TRY(query_rows(c, &episodic_many, f, NULL, &r));
    *many = row_int(r, 0, &vectors.n, 0) > most;
    return OK;
}

static enum err find_candidates(struct call *c, struct finding *f, struct rows **r)
{
    const int64_t most = is_filtered(f) ? MOST_COMPARED_FILTERED : MOST_COMPARED;
    bool many;
    TRY(are_many(c, f, most, &many));
    if (many)
        return find_by_index(c, f, r);
    TRY(find_exactly(c, f, most, r));
    return matching(*r) > most ? find_by_index(c, f, r) : OK;
}

/* What the regime takes off is in the hits; a row without an id has only said how many there are. */
static void take_hits(struct call *c, struct finding *f, const struct rows *r)
{
    f->candidates = r;
    f->hits = arena_zero(&c->arena, (size_t)(rows_count(r) + 1) * sizeof *f->hits);
    for (int row = 0; row < rows_count(r); row++) {
        const char *id = rows_text(r, row, &candidate.id);
        if (!id)
            continue;
        f->hits[f->count++] = (struct fusion_hit){
            .id = id,
            .created_us = row_int(r, row, &candidate.created_us, 0),
            .compared = rows_text(r, row, &candidate.cosine),
            .cosine = row_double(r, row, &candidate.cosine, 0),
            .weight = row_double(r, row, &candidate.weight, 0),
            .covered = row_double(r, row, &candidate.covered, 0),
            .shared = (int)row_int(r, row, &candidate.shared, 0),
            .differing = (int)row_int(r, row, &candidate.differing, 0),
            .row = (size_t)row,
        };
    }
    fusion_rank(f->hits, f->count, f->regime_penalty ? strtod(f->regime_penalty, NULL) : 0);
}

/* The entries that were not compared by meaning because they have no vector of the service yet. */
static int64_t left_out(struct call *c, const struct finding *f, const struct rows *r)
{
    const bool own = f->direction && strcmp(f->space, embedder_space(c->loop).model) == 0;
    return own && rows_count(r) ? row_int(r, 0, &candidate.pending, 0) : 0;
}

/* Nothing was compared: perhaps the caller's vector has a dimension that its model has not. */
static enum err check_dim(struct call *c, const struct finding *f)
{
    struct rows *r;
    for (size_t i = 0; i < f->count; i++)
        if (f->hits[i].compared)
            return OK;
    TRY(query_rows(c, &episodic_other_dim, f, NULL, &r));
    if (!rows_count(r))
        return OK;
    return problem_field(&c->problem, "vector", FAULT_INVALID_VECTOR,
                         "has %lld numbers; vectors of %s have %s", (long long)f->dim, f->space,
                         rows_text(r, 0, &other.dim));
}

/* The entries of the best. One that was deleted since it was found is not shown. */
static enum err take_entries(struct call *c, struct finding *f)
{
    const size_t wanted = f->count < (size_t)f->k ? f->count : (size_t)f->k;
    struct rows *r;
    f->ids = (struct texts){ 0, arena_alloc(&c->arena, (wanted + 1) * sizeof *f->ids.items) };
    f->found = arena_alloc(&c->arena, (wanted + 1) * sizeof *f->found);
    for (size_t i = 0; i < wanted; i++)
        f->ids.items[f->ids.count++] = f->hits[i].id;
    if (!wanted)
        return OK;
    TRY(query_rows(c, &episodic_found, f, NULL, &r));
    f->entries = r;
    f->ids.count = 0;
    for (size_t i = 0; i < wanted; i++) {
        int row = rows_count(r) - 1;
        while (row >= 0 && strcmp(rows_text(r, row, &entry.id), f->hits[i].id) != 0)
            row--;
        if (row < 0)
            continue;
        f->found[f->ids.count] = (struct found){ &f->hits[i], row };
        f->ids.items[f->ids.count++] = f->hits[i].id;
    }
    return OK;
}

enum err episodic_find_run(struct call *c, struct finding *f)
{
    struct rows *r;
    const bool regime = f->regime.count && f->regime_penalty && strtod(f->regime_penalty, NULL) > 0;
    f->width = f->direction ? vector_column((size_t)f->dim) : FIELD_NO_INT;
    f->most_near =
        (f->k * NEAR_EACH > LEAST_NEAR ? f->k * NEAR_EACH : LEAST_NEAR) * (regime ? REGIME_TIMES : 1);
    f->most_followed = MOST_FOLLOWED;
    f->most_worded = MOST_WORDED;
    f->most_sampled = MOST_SAMPLED;
    f->most_pending = MOST_PENDING;
    if (f->words)
        TRY(weigh_words(c, f));
    TRY(find_candidates(c, f, &r));
    take_hits(c, f, r);
    f->pending = left_out(c, f, r);
    if (f->given)
        TRY(check_dim(c, f));
    return take_entries(c, f);
}

/* ---- as it is shown ---- */

/* A score in millionths as a number with six digits behind the point. */
static void put_score(struct buf *out, const char *name, int64_t score)
{
    const int64_t size = score < 0 ? -score : score;
    buf_json_key(out, name);
    buf_fmt(out, "%s%lld.%06lld", score < 0 ? "-" : "", (long long)(size / 1000000),
            (long long)(size % 1000000));
}

static void put_scores(struct buf *out, const struct fusion_hit *h)
{
    put_score(out, "score", h->score);
    buf_json_key(out, "parts");
    buf_char(out, '{');
    if (h->compared)
        put_score(out, "cosine", h->near);
    else
        buf_text(out, "\"cosine\":null");
    put_score(out, "text", h->text);
    put_score(out, "regime_penalty", h->penalty);
    buf_char(out, '}');
}

void episodic_find_json(struct buf *out, const struct finding *f, size_t i)
{
    const struct found *found = &f->found[i];
    buf_char(out, '{');
    rows_members(out, f->entries, found->row);
    put_scores(out, found->hit);
    json_put_raw(out, "regime_mismatch", rows_text(f->candidates, (int)found->hit->row, &candidate.mismatch));
    buf_char(out, '}');
}

void episodic_find_candidates_json(struct buf *out, const struct finding *f, size_t most)
{
    buf_char(out, '[');
    for (size_t i = 0; i < f->count && i < most; i++) {
        buf_fmt(out, "%s{\"id\":\"%s\"", i ? "," : "", f->hits[i].id);
        put_scores(out, &f->hits[i]);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* Runs a search: finds candidates by vector and by words, ranks them together, and reads the best entries.
 * These statements of the store run, in this order:
 *
 *   1. lexemes       with a query text: how rare each of its words is
 *   2. vector_count  with a vector and no filter: whether there are too many vectors for step 3
 *   3. exact         unless there are: compares all vectors that pass the filter, unless too many do
 *   4. nearest       if too many: asks the vector index, which returns an approximation
 *   5. exact         if the index returned too few: compares all, however many
 *   6. other_dim     if the caller's vector matched none: whether it has the wrong dimension
 *   7. found         reads the best entries in full
 *
 * Most searches run 1, 2, 7 and either 3 or 4. Each of 3, 4 and 5 also finds the candidates by words, returns
 * the components of all scores, and counts the entries that have no vector yet. A search without text and
 * vector runs newest instead of 1 to 6. */
#include "handlers/kit/find.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/vector.h"
#include "server/embedder.h"

enum {
    /* Up to this many vectors are all compared. With a filter, the index must visit vectors that do not pass,
     * and may miss some that do. So comparing all stays faster for longer (measured with 50,000 vectors of
     * 1,536 dimensions: 8 µs per comparison, 30 µs per vector that the index visits). */
    COMPARED_MAX = 1000,
    COMPARED_FILTERED_MAX = 5000,
    COMPARED_NO_LIMIT = 2000000000,
    VISITED_MAX = 5000, /* vectors of any owner that the index visits before step 5 */
    /* candidates by vector, and as many by words */
    CANDIDATES_MIN = 50,
    CANDIDATES_PER_HIT = 4,
    CANDIDATES_REGIME_FACTOR = 4, /* the index does not know the regime, which may change the order */
    WORD_MATCHES_MAX = 1000,
    SAMPLED_MAX = 1000,  /* newest entries in which words are counted */
    PENDING_MAX = 10000, /* the count stops there */
    LEXEMES_MAX = 32,
    RECORDED_MAX = 100, /* candidates in the record of a retrieval */
};

/* ---- the query ---- */

enum err find_read_vector(struct call *c, struct arena *arena, const char *field, const struct texts *numbers,
                          const char *model, const float **vector)
{
    const struct embedder_space own = embedder_space(c->loop);
    const size_t dim = numbers->count;
    if (strcmp(model, own.model) == 0 && dim != own.dim)
        return problem_field(&c->problem, field, FAULT_INVALID_VECTOR,
                             "has %zu numbers; vectors of %s have %zu", dim, own.model, own.dim);
    float *v = arena_alloc(arena, dim * sizeof *v);
    for (size_t i = 0; i < dim; i++)
        v[i] = strtof(numbers->items[i], NULL);
    if (!vector_normalise(v, dim))
        return problem_field(&c->problem, field, FAULT_INVALID_VECTOR,
                             "must have a length that is above zero and finite");
    *vector = v;
    return OK;
}

static void set_vector(struct call *c, struct find *f, const float *vector, size_t dim, const char *model)
{
    struct buf out = { .arena = &c->arena };
    vector_array(&out, vector, dim);
    f->query_vector = buf_string(&out);
    f->query_model = model;
    f->query_dim = (int64_t)dim;
}

enum err find_without_vector(struct find *f, const char *why)
{
    if (!f->query_text)
        return ERR_EMBEDDER_UNAVAILABLE;
    f->degraded = why;
    return OK;
}

enum err find_by_text(struct call *c, struct find *f, const char *text)
{
    const struct embedder_space own = embedder_space(c->loop);
    float *v = arena_alloc(&c->arena, own.dim * sizeof *v);
    enum err err = embedder_embed_one(&c->task, text, v);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        return find_without_vector(f, "embedder_unavailable");
    TRY(err);
    set_vector(c, f, v, own.dim, own.model);
    return OK;
}

enum err find_by_vector(struct call *c, struct find *f, const struct texts *numbers, const char *model)
{
    const float *v;
    TRY(find_read_vector(c, &c->arena, "vector", numbers, model, &v));
    set_vector(c, f, v, numbers->count, model);
    f->supplied = true;
    return OK;
}

/* ---- words ---- */

static void set_words(struct call *c, struct find *f, const struct fusion_lexeme *lexemes, size_t count)
{
    const char **texts = arena_alloc(&c->arena, (count + 1) * sizeof *texts),
               **idfs = arena_alloc(&c->arena, (count + 1) * sizeof *idfs);
    struct buf query = { .arena = &c->arena };
    for (size_t i = 0; i < count; i++) {
        texts[i] = lexemes[i].text;
        idfs[i] = arena_fmt(&c->arena, "%.17g", lexemes[i].idf);
        if (lexemes[i].selective)
            buf_fmt(&query, "%s%s", query.len ? " | " : "", lexemes[i].text);
    }
    f->lexemes = (struct texts){ count, texts };
    f->idfs = (struct texts){ count, idfs };
    f->word_query = buf_string(&query);
}

static enum err weigh_words(struct call *c, const struct find_store *store, const void *in, struct find *f)
{
    struct rows *r;
    TRY(query_rows(c, store->lexemes, in, NULL, &r));
    const size_t count = (size_t)rows_count(r);
    if (!count)
        return OK; /* the text has only stop words */
    struct fusion_lexeme *lexemes = arena_zero(&c->arena, count * sizeof *lexemes);
    for (size_t i = 0; i < count; i++) {
        lexemes[i].text = rows_text(r, (int)i, &find_lexeme.query);
        lexemes[i].frequency = row_int(r, (int)i, &find_lexeme.frequency, 0);
    }
    const int64_t sampled = row_int(r, 0, &find_lexeme.sampled, 0);
    set_words(c, f, lexemes, fusion_choose(lexemes, count, sampled, sampled < SAMPLED_MAX, LEXEMES_MAX));
    return OK;
}

/* ---- candidates ---- */

/* A search that is running. */
struct run {
    const struct find_store *store;
    const void *in;
    struct find *f;
};

static enum err count_vectors(struct call *c, const struct run *run, int64_t *count)
{
    struct rows *r;
    TRY(query_rows(c, run->store->vector_count, run->in, NULL, &r));
    *count = row_int(r, 0, &find_vectors.n, 0);
    return OK;
}

/* `matching`: how many vectors pass the filter; for the index, how many of those that it returned. */
static enum err query_candidates(struct call *c, const struct query *q, const struct run *run,
                                 struct rows **r, int64_t *matching)
{
    run->f->exact = q == run->store->exact;
    TRY(query_rows(c, q, run->in, NULL, r));
    *matching = rows_count(*r) ? row_int(*r, 0, &find_candidate.matching, 0) : 0;
    return OK;
}

/* Each vector column has an index, and each index has a query. */
static const struct query *nearest_query(const struct run *run)
{
    static const int64_t widths[FIND_WIDTHS] = { 384, 768, 1024, 1536, 3072, 4000 };
    size_t i = 0;
    while (i + 1 < FIND_WIDTHS && widths[i] < run->f->width)
        i++;
    return run->store->nearest[i];
}

/* Steps 2 to 5 of the opening comment. */
static enum err find_candidates(struct call *c, const struct run *run, struct rows **r)
{
    struct find *f = run->f;
    int64_t matching = 0;
    if (run->store->newest && !f->query_text && !f->query_vector)
        return query_candidates(c, run->store->newest, run, r, &matching);
    f->max_compared = f->filtered ? COMPARED_FILTERED_MAX : COMPARED_MAX;
    if (f->query_vector && !f->filtered)
        TRY(count_vectors(c, run, &matching));
    if (matching <= f->max_compared)
        TRY(query_candidates(c, run->store->exact, run, r, &matching));
    if (matching <= f->max_compared)
        return OK;
    TRY(query_candidates(c, nearest_query(run), run, r, &matching));
    if (matching >= f->max_candidates)
        return OK;
    f->max_compared = COMPARED_NO_LIMIT;
    return query_candidates(c, run->store->exact, run, r, &matching);
}

/* ---- ranking ---- */

/* If nothing was found, the one row has counts and no id. */
static void rank_candidates(struct call *c, struct find *f, const struct rows *r)
{
    f->components = r;
    f->candidates = arena_zero(&c->arena, (size_t)(rows_count(r) + 1) * sizeof *f->candidates);
    for (int row = 0; row < rows_count(r); row++) {
        const char *id = rows_text(r, row, &find_candidate.id);
        if (!id)
            continue;
        f->candidates[f->candidate_count++] = (struct fusion_hit){
            .id = id,
            .created_us = row_int(r, row, &find_candidate.created_us, 0),
            .has_cosine = rows_text(r, row, &find_candidate.cosine),
            .cosine = row_double(r, row, &find_candidate.cosine, 0),
            .weight = row_double(r, row, &find_candidate.weight, 0),
            .coverage = row_double(r, row, &find_candidate.coverage, 0),
            .shared = (int)row_int(r, row, &find_candidate.shared, 0),
            .differing = (int)row_int(r, row, &find_candidate.differing, 0),
            .row = (size_t)row,
        };
    }
    if (f->query_text || f->query_vector) /* else they are in their order, the newest first */
        fusion_rank(f->candidates, f->candidate_count, f->regime_penalty);
}

static enum err check_dim(struct call *c, const struct run *run)
{
    const struct find *f = run->f;
    struct rows *r;
    for (size_t i = 0; i < f->candidate_count; i++)
        if (f->candidates[i].has_cosine)
            return OK;
    TRY(query_rows(c, run->store->other_dim, run->in, NULL, &r));
    if (!rows_count(r))
        return OK;
    return problem_field(&c->problem, "vector", FAULT_INVALID_VECTOR,
                         "has %lld numbers; vectors of %s have %s", (long long)f->query_dim, f->query_model,
                         rows_text(r, 0, &find_other.dim));
}

/* ---- entries ---- */

static int find_row(const struct rows *r, const struct column *column, const char *id)
{
    int row = rows_count(r) - 1;
    while (row >= 0 && strcmp(rows_text(r, row, column), id) != 0)
        row--;
    return row;
}

static bool is_pinned(const struct find *f, const char *id)
{
    for (size_t i = 0; i < f->pinned.count; i++)
        if (strcmp(f->pinned.items[i], id) == 0)
            return true;
    return false;
}

/* Chooses `k` candidates: the pinned ones, and the best of the others. Returns how many. */
static size_t choose(const struct find *f, const struct fusion_hit **chosen)
{
    size_t pinned = 0, count = 0;
    for (size_t i = 0; i < f->candidate_count; i++)
        pinned += is_pinned(f, f->candidates[i].id);
    size_t others = pinned < (size_t)f->k ? (size_t)f->k - pinned : 0;
    for (size_t i = 0; i < f->candidate_count && count < (size_t)f->k; i++) {
        const bool is_other = !is_pinned(f, f->candidates[i].id);
        if (is_other && !others)
            continue;
        others -= is_other;
        chosen[count++] = &f->candidates[i];
    }
    return count;
}

/* Reads the best entries. One that was deleted in the meantime is left out. */
static enum err read_entries(struct call *c, const struct run *run)
{
    struct find *f = run->f;
    const struct fusion_hit **chosen = arena_alloc(&c->arena, (size_t)f->k * sizeof *chosen);
    const size_t count = choose(f, chosen);
    struct rows *r;
    f->ids = (struct texts){ count, arena_alloc(&c->arena, (count + 1) * sizeof *f->ids.items) };
    f->hits = arena_alloc(&c->arena, (count + 1) * sizeof *f->hits);
    for (size_t i = 0; i < count; i++)
        f->ids.items[i] = chosen[i]->id;
    if (!count)
        return OK;
    TRY(query_rows(c, run->store->found, run->in, NULL, &r));
    f->entries = r;
    for (size_t i = 0; i < count; i++) {
        const struct fusion_hit *score = chosen[i];
        const int row = find_row(r, run->store->found_id, score->id);
        if (row < 0)
            continue;
        f->ids.items[f->hit_count] = score->id;
        f->hits[f->hit_count++] = (struct find_hit){ score, row };
    }
    f->ids.count = f->hit_count;
    return OK;
}

/* ---- the search ---- */

/* Entries that are pending get a vector of the service, so only a query of its model misses them. */
static void set_limits(struct call *c, struct find *f)
{
    const int64_t candidates = f->k * CANDIDATES_PER_HIT;
    const bool own_model = f->query_vector && strcmp(f->query_model, embedder_space(c->loop).model) == 0;
    f->width = f->query_vector ? vector_column((size_t)f->query_dim) : FIELD_NO_INT;
    f->max_candidates = (candidates > CANDIDATES_MIN ? candidates : CANDIDATES_MIN) *
                        (f->regime_penalty > 0 ? CANDIDATES_REGIME_FACTOR : 1);
    f->max_visited = VISITED_MAX;
    f->max_word_matches = WORD_MATCHES_MAX;
    f->max_sampled = SAMPLED_MAX;
    f->max_pending = own_model ? PENDING_MAX : 0;
}

enum err find_run(struct call *c, const struct find_store *store, const void *in, struct find *f)
{
    const struct run run = { store, in, f };
    struct rows *r;
    set_limits(c, f);
    if (f->query_text)
        TRY(weigh_words(c, store, in, f));
    TRY(find_candidates(c, &run, &r));
    rank_candidates(c, f, r);
    f->pending = rows_count(r) ? row_int(r, 0, &find_candidate.pending, 0) : 0;
    if (f->supplied)
        TRY(check_dim(c, &run));
    return read_entries(c, &run);
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

void find_put_scores(struct buf *out, const struct fusion_hit *h, enum find_parts parts)
{
    put_score(out, "score", h->score);
    buf_json_key(out, "parts");
    buf_char(out, '{');
    if (h->has_cosine)
        put_score(out, "cosine", h->cosine_part);
    else
        json_put_raw(out, "cosine", NULL);
    put_score(out, "text", h->text_part);
    if (parts == FIND_PARTS_WITH_REGIME)
        put_score(out, "regime_penalty", h->regime_part);
    buf_char(out, '}');
}

const char *find_candidates_json(struct arena *arena, const struct find *f, enum find_parts parts)
{
    struct buf out = { .arena = arena };
    buf_char(&out, '[');
    for (size_t i = 0; i < f->candidate_count && i < RECORDED_MAX; i++) {
        buf_text(&out, i ? ",{" : "{");
        json_put_text(&out, "id", f->candidates[i].id);
        find_put_scores(&out, &f->candidates[i], parts);
        buf_char(&out, '}');
    }
    buf_char(&out, ']');
    return buf_string(&out);
}

void find_put_query(struct buf *out, const struct find *f)
{
    json_put_text(out, "model", f->query_model);
    json_put_raw(out, "exact", !f->query_vector ? NULL : f->exact ? "true" : "false");
    json_put_text(out, "degraded", f->degraded);
    json_put_int(out, "pending", f->pending);
}

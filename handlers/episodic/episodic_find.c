/* Runs a search: finds candidates by vector and by words, ranks them together, and reads the best entries.
 * These statements run, in this order:
 *
 *   1. episodic_lexemes       with a query text: how rare each of its words is
 *   2. episodic_vector_count  with a vector and no filter: whether there are too many vectors for step 3
 *   3. episodic_exact         unless there are: compares all vectors that pass the filter, unless too many do
 *   4. episodic_nearest_*     if too many: asks the vector index, which returns an approximation
 *   5. episodic_exact         if the index returned too few: compares all, however many
 *   6. episodic_other_dim     if nothing could be compared with the caller's vector: whether it has the wrong
 *                             dimension
 *   7. episodic_found         reads the best entries in full
 *
 * Most searches run 1, 2, 7 and either 3 or 4. Each of 3, 4 and 5 also finds the candidates by words, returns
 * the components of all scores, and counts the entries that have no vector yet. */
#include "handlers/episodic/episodic_find.h"

#include <stdlib.h>
#include <string.h>

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
};

COLUMNS(lexeme, query, frequency, sampled);
COLUMNS(candidate, id, created_us, cosine, weight, coverage, shared, differing, mismatch, matching, pending);
COLUMNS(vectors, n);
COLUMNS(other, dim);
COLUMNS(entry, id);
QUERY(episodic_lexemes, EPISODIC_LEXEMES, episodic_search_fields, READS(lexeme));
QUERY(vector_count, EPISODIC_VECTOR_COUNT, episodic_search_fields, READS(vectors));
QUERY(episodic_exact, EPISODIC_EXACT, episodic_search_fields, READS(candidate));
QUERY(nearest_384, EPISODIC_NEAREST_384, episodic_search_fields, READS(candidate));
QUERY(nearest_768, EPISODIC_NEAREST_768, episodic_search_fields, READS(candidate));
QUERY(nearest_1024, EPISODIC_NEAREST_1024, episodic_search_fields, READS(candidate));
QUERY(nearest_1536, EPISODIC_NEAREST_1536, episodic_search_fields, READS(candidate));
QUERY(nearest_3072, EPISODIC_NEAREST_3072, episodic_search_fields, READS(candidate));
QUERY(nearest_4000, EPISODIC_NEAREST_4000, episodic_search_fields, READS(candidate));
QUERY(episodic_other_dim, EPISODIC_OTHER_DIM, episodic_search_fields, READS(other));
QUERY(episodic_found, EPISODIC_FOUND, episodic_search_fields, READS(entry));

/* ---- words ---- */

static void set_words(struct call *c, struct episodic_search *s, const struct fusion_lexeme *lexemes,
                      size_t count)
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
    s->lexemes = (struct texts){ count, texts };
    s->idfs = (struct texts){ count, idfs };
    s->word_query = buf_string(&query);
}

static enum err weigh_words(struct call *c, struct episodic_search *s)
{
    struct rows *r;
    TRY(query_rows(c, &episodic_lexemes, s, NULL, &r));
    const size_t count = (size_t)rows_count(r);
    if (!count)
        return OK; /* the text has only stop words */
    struct fusion_lexeme *lexemes = arena_zero(&c->arena, count * sizeof *lexemes);
    for (size_t i = 0; i < count; i++) {
        lexemes[i].text = rows_text(r, (int)i, &lexeme.query);
        lexemes[i].frequency = row_int(r, (int)i, &lexeme.frequency, 0);
    }
    const int64_t sampled = row_int(r, 0, &lexeme.sampled, 0);
    set_words(c, s, lexemes, fusion_choose(lexemes, count, sampled, sampled < SAMPLED_MAX, LEXEMES_MAX));
    return OK;
}

/* ---- candidates ---- */

static bool is_filtered(const struct episodic_search *s)
{
    return s->historical || s->ticker || s->task_type || s->source || s->min_confidence || s->since ||
           s->until || field_is_true(s->regime_only);
}

static enum err count_vectors(struct call *c, const struct episodic_search *s, int64_t *count)
{
    struct rows *r;
    TRY(query_rows(c, &vector_count, s, NULL, &r));
    *count = row_int(r, 0, &vectors.n, 0);
    return OK;
}

/* `matching`: how many vectors pass the filter; for the index, how many of those that it returned. */
static enum err query_candidates(struct call *c, const struct query *q, struct episodic_search *s,
                                 struct rows **r, int64_t *matching)
{
    s->exact = q == &episodic_exact;
    TRY(query_rows(c, q, s, NULL, r));
    *matching = rows_count(*r) ? row_int(*r, 0, &candidate.matching, 0) : 0;
    return OK;
}

/* Each vector column has an index, and each index has a query. */
static const struct query *nearest_query(int64_t width)
{
    static const struct {
        int64_t width;
        const struct query *query;
    } columns[] = {
        { 384, &nearest_384 },   { 768, &nearest_768 },   { 1024, &nearest_1024 },
        { 1536, &nearest_1536 }, { 3072, &nearest_3072 }, { 4000, &nearest_4000 },
    };
    size_t i = 0;
    while (i + 1 < sizeof columns / sizeof *columns && columns[i].width < width)
        i++;
    return columns[i].query;
}

/* Steps 2 to 5 of the opening comment. */
static enum err find_candidates(struct call *c, struct episodic_search *s, struct rows **r)
{
    int64_t matching = 0;
    s->max_compared = is_filtered(s) ? COMPARED_FILTERED_MAX : COMPARED_MAX;
    if (s->query_vector && !is_filtered(s))
        TRY(count_vectors(c, s, &matching));
    if (matching <= s->max_compared)
        TRY(query_candidates(c, &episodic_exact, s, r, &matching));
    if (matching <= s->max_compared)
        return OK;
    TRY(query_candidates(c, nearest_query(s->width), s, r, &matching));
    if (matching >= s->max_candidates)
        return OK;
    s->max_compared = COMPARED_NO_LIMIT;
    return query_candidates(c, &episodic_exact, s, r, &matching);
}

/* ---- ranking ---- */

/* If nothing was found, the one row has counts and no id. */
static void rank_candidates(struct call *c, struct episodic_search *s, const struct rows *r)
{
    s->candidates = arena_zero(&c->arena, (size_t)(rows_count(r) + 1) * sizeof *s->candidates);
    for (int row = 0; row < rows_count(r); row++) {
        const char *id = rows_text(r, row, &candidate.id);
        if (!id)
            continue;
        s->candidates[s->candidate_count++] = (struct fusion_hit){
            .id = id,
            .created_us = row_int(r, row, &candidate.created_us, 0),
            .has_cosine = rows_text(r, row, &candidate.cosine),
            .cosine = row_double(r, row, &candidate.cosine, 0),
            .weight = row_double(r, row, &candidate.weight, 0),
            .coverage = row_double(r, row, &candidate.coverage, 0),
            .shared = (int)row_int(r, row, &candidate.shared, 0),
            .differing = (int)row_int(r, row, &candidate.differing, 0),
            .row = (size_t)row,
        };
    }
    fusion_rank(s->candidates, s->candidate_count, strtod(s->regime_penalty, NULL));
}

/* Entries that are pending get a vector of the service, so only a query of its model misses them. */
static int64_t count_pending(struct call *c, const struct episodic_search *s, const struct rows *r)
{
    const bool own_model = s->query_vector && strcmp(s->query_model, embedder_space(c->loop).model) == 0;
    return own_model && rows_count(r) ? row_int(r, 0, &candidate.pending, 0) : 0;
}

static enum err check_dim(struct call *c, const struct episodic_search *s)
{
    struct rows *r;
    for (size_t i = 0; i < s->candidate_count; i++)
        if (s->candidates[i].has_cosine)
            return OK;
    TRY(query_rows(c, &episodic_other_dim, s, NULL, &r));
    if (!rows_count(r))
        return OK;
    return problem_field(&c->problem, "vector", FAULT_INVALID_VECTOR,
                         "has %lld numbers; vectors of %s have %s", (long long)s->query_dim, s->query_model,
                         rows_text(r, 0, &other.dim));
}

/* ---- entries ---- */

static int find_row(const struct rows *r, const char *id)
{
    int row = rows_count(r) - 1;
    while (row >= 0 && strcmp(rows_text(r, row, &entry.id), id) != 0)
        row--;
    return row;
}

/* Reads the best entries. One that was deleted in the meantime is left out. */
static enum err read_entries(struct call *c, struct episodic_search *s, const struct rows *candidates)
{
    const size_t count = s->candidate_count < (size_t)s->k ? s->candidate_count : (size_t)s->k;
    struct rows *r;
    s->ids = (struct texts){ count, arena_alloc(&c->arena, (count + 1) * sizeof *s->ids.items) };
    s->hits = arena_alloc(&c->arena, (count + 1) * sizeof *s->hits);
    for (size_t i = 0; i < count; i++)
        s->ids.items[i] = s->candidates[i].id;
    if (!count)
        return OK;
    TRY(query_rows(c, &episodic_found, s, NULL, &r));
    s->entries = r;
    for (size_t i = 0; i < count; i++) {
        const struct fusion_hit *score = &s->candidates[i];
        const int row = find_row(r, score->id);
        if (row < 0)
            continue;
        s->ids.items[s->hit_count] = score->id;
        s->hits[s->hit_count++] =
            (struct episodic_hit){ score, rows_text(candidates, (int)score->row, &candidate.mismatch), row };
    }
    s->ids.count = s->hit_count;
    return OK;
}

/* ---- the search ---- */

static void set_limits(struct episodic_search *s)
{
    const bool regime_counts = s->regime.count && strtod(s->regime_penalty, NULL) > 0;
    const int64_t candidates = s->k * CANDIDATES_PER_HIT;
    s->width = s->query_vector ? vector_column((size_t)s->query_dim) : FIELD_NO_INT;
    s->max_candidates = (candidates > CANDIDATES_MIN ? candidates : CANDIDATES_MIN) *
                        (regime_counts ? CANDIDATES_REGIME_FACTOR : 1);
    s->max_visited = VISITED_MAX;
    s->max_word_matches = WORD_MATCHES_MAX;
    s->max_sampled = SAMPLED_MAX;
    s->max_pending = PENDING_MAX;
}

enum err episodic_find_run(struct call *c, struct episodic_search *s)
{
    struct rows *r;
    set_limits(s);
    if (s->query_text)
        TRY(weigh_words(c, s));
    TRY(find_candidates(c, s, &r));
    rank_candidates(c, s, r);
    s->pending = count_pending(c, s, r);
    if (s->vector.count && s->query_vector)
        TRY(check_dim(c, s));
    return read_entries(c, s, r);
}

/* A search by meaning and by words in one store. The store has its own statements; the steps, the limits and
 * the ranking are the same for all. */
#ifndef DAYBOOK_HANDLERS_KIT_FIND_H
#define DAYBOOK_HANDLERS_KIT_FIND_H

#include "core/episodic/fusion.h"
#include "server/dispatch/query.h"

enum { FIND_WIDTHS = 6 }; /* vector columns, each with an index */

/* The columns that the statements of a store return. */
SHARED_COLUMNS(find_lexeme, query, frequency, sampled);
SHARED_COLUMNS(find_candidate, id, created_us, cosine, weight, coverage, shared, differing, mismatch,
               matching, pending);
SHARED_COLUMNS(find_vectors, n);
SHARED_COLUMNS(find_other, dim);

/* The statements of a store; handlers/kit/find.c says what each does. */
struct find_store {
    const struct query *lexemes, *vector_count, *exact, *nearest[FIND_WIDTHS], *other_dim, *found;
    const struct column *found_id;
    const struct query *newest; /* without text and vector; NULL: the store has no such search */
};

/* An entry of the result. */
struct find_hit {
    const struct fusion_hit *score;
    int row; /* in the rows of entries */
};

struct find {
    /* set by the caller; find_by_text and find_by_vector set the query */
    const char *query_text;                 /* words to match, or NULL */
    const char *query_vector, *query_model; /* "{0.1,0.2}" of length 1, and its model; or NULL */
    int64_t query_dim;
    const char *degraded;  /* why the query has no vector though it should, or NULL */
    bool supplied;         /* the vector is the caller's */
    bool filtered;         /* not every entry of the store may be found */
    int64_t k;             /* hits */
    double regime_penalty; /* 0: the regime does not matter */

    /* parameters of the statements */
    int64_t width, max_compared, max_candidates, max_visited, max_word_matches, max_sampled, max_pending;
    const char *word_query; /* a tsquery: entries that match it become candidates */
    struct texts lexemes, idfs;
    struct texts pinned; /* hits whatever their rank, if they pass the filter; at most `k` */
    struct texts ids;    /* of the hits, best first */

    /* the result */
    const struct rows *components; /* of the candidates: rows of find_candidate */
    struct fusion_hit *candidates; /* best first */
    size_t candidate_count;
    struct find_hit *hits; /* the best `k` candidates, the pinned ones included */
    size_t hit_count;
    const struct rows *entries;
    bool exact;      /* every vector that passes the filter was compared */
    int64_t pending; /* entries that were not compared because they have no vector yet */
};

/* clang-format off */
/* The rows of a field table for the parameters, where `type` has the member `find_`. */
#define FIND_FIELD(what, type, find_, member) \
    { .name = #member, .from = COMPUTED, .kind = (what), .offset = offsetof(type, find_.member) }
#define FIND_FIELDS(type, find_) \
    FIND_FIELD(KIND_TEXT, type, find_, query_text), FIND_FIELD(KIND_TEXT, type, find_, query_vector), \
    FIND_FIELD(KIND_LINE, type, find_, query_model), FIND_FIELD(KIND_INT, type, find_, query_dim), \
    FIND_FIELD(KIND_INT, type, find_, width), FIND_FIELD(KIND_INT, type, find_, max_compared), \
    FIND_FIELD(KIND_INT, type, find_, max_candidates), FIND_FIELD(KIND_INT, type, find_, max_visited), \
    FIND_FIELD(KIND_INT, type, find_, max_word_matches), FIND_FIELD(KIND_INT, type, find_, max_sampled), \
    FIND_FIELD(KIND_INT, type, find_, max_pending), FIND_FIELD(KIND_TEXT, type, find_, word_query), \
    FIND_FIELD(KIND_TEXTS, type, find_, lexemes), FIND_FIELD(KIND_TEXTS, type, find_, idfs), \
    FIND_FIELD(KIND_UUIDS, type, find_, pinned), FIND_FIELD(KIND_UUIDS, type, find_, ids)
/* clang-format on */

/* Parses a vector of the caller and scales it to length 1. Faults name `field`. */
enum err find_read_vector(struct call *c, struct arena *arena, const char *field, const struct texts *numbers,
                          const char *model, const float **vector) must_check;

/* Sets the query's vector: that of the text, or the caller's. */
enum err find_by_text(struct call *c, struct find *f, const char *text) must_check;
enum err find_by_vector(struct call *c, struct find *f, const struct texts *numbers,
                        const char *model) must_check;
/* Continues with words alone; an error if there are none. */
enum err find_without_vector(struct find *f, const char *why) must_check;

/* Runs the query. `in` is the struct that the store's field table describes; `f` is part of it. A vector of
 * the caller with a dimension that its model does not have is an error of the field `vector`. Waits, so never
 * inside a transaction. */
enum err find_run(struct call *c, const struct find_store *store, const void *in, struct find *f) must_check;

/* The regime that an entry was found in does not matter in every store. */
enum find_parts { FIND_PARTS, FIND_PARTS_WITH_REGIME };
/* Adds the members "score" and "parts". */
void find_put_scores(struct buf *out, const struct fusion_hit *h, enum find_parts parts);
/* The best candidates with their scores, as a JSON list for the record of a retrieval. */
const char *find_candidates_json(struct arena *arena, const struct find *f, enum find_parts parts);
/* Adds the members "model", "exact", "degraded" and "pending". */
void find_put_query(struct buf *out, const struct find *f);

#endif

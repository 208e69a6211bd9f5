/* A search in the episodic memory: the request, the query that it means, and the entries found. */
#ifndef DAYBOOK_HANDLERS_EPISODIC_EPISODIC_FIND_H
#define DAYBOOK_HANDLERS_EPISODIC_EPISODIC_FIND_H

#include "core/episodic/fusion.h"
#include "server/dispatch/query.h"

/* An entry of the result. */
struct episodic_hit {
    const struct fusion_hit *score;
    const char *regime_mismatch; /* JSON: the regime tags that differ */
    int row;                     /* in the rows of entries */
};

struct episodic_search {
    /* the request; as_of is the current time if the caller gave none */
    const char *text, *model, *id, *mode, *ticker, *task_type, *source, *min_confidence, *since, *until,
        *regime_only, *regime_penalty, *as_of, *record;
    struct texts vector;
    struct objects regime; /* of struct regime_in */
    int64_t k;

    /* the query */
    const char *query_text;                 /* words to match, or NULL */
    const char *query_vector, *query_model; /* "{0.1,0.2}" of length 1, and its model; or NULL */
    int64_t query_dim;
    bool historical;      /* the caller gave as_of */
    const char *degraded; /* why the query has no vector though the mode wants one, or NULL */

    /* parameters of the statements */
    int64_t width, max_compared, max_candidates, max_visited, max_word_matches, max_sampled, max_pending;
    const char *word_query; /* a tsquery: entries that match it become candidates */
    struct texts lexemes, idfs;
    struct texts ids; /* of the hits */

    /* the result */
    struct fusion_hit *candidates; /* best first */
    size_t candidate_count;
    struct episodic_hit *hits; /* the best `k` candidates */
    size_t hit_count;
    const struct rows *entries;
    bool exact;      /* every vector that passes the filter was compared */
    int64_t pending; /* entries that were not compared because they have no vector yet */
};
extern const struct field episodic_search_fields[];

/* Runs the query. A vector of the caller with a dimension that its model does not have is an error of the
 * field `vector`. Waits, so never inside a transaction. */
enum err episodic_find_run(struct call *c, struct episodic_search *s) must_check;

#endif

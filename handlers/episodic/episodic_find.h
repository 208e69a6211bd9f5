/* Finding entries of the episodic memory by meaning and by words, as several handlers need it. */
#ifndef DAYBOOK_HANDLERS_EPISODIC_EPISODIC_FIND_H
#define DAYBOOK_HANDLERS_EPISODIC_EPISODIC_FIND_H

#include "core/episodic/fusion.h"
#include "server/dispatch/query.h"

/* One that was found, and where it is in the rows of the entries. */
struct found {
    const struct fusion_hit *hit;
    int row;
};

/* What is looked for and what was found. Everything but `as_of` and `k` may be absent (NULL, or no items). */
struct finding {
    /* a text whose words count, and a vector "{0.1,0.2}" in the space of its model; without both nothing is
     * found */
    const char *words;
    const char *direction, *space;
    int64_t dim;
    bool given; /* that vector is the caller's */
    /* what may be found */
    const char *as_of, *ticker, *task_type, *source, *min_confidence, *since, *until, *id /* not this one */,
        *regime_only, *regime_penalty;
    struct objects regime; /* of struct regime_in */
    bool past;             /* as_of is an instant that the caller named */
    int64_t k;

    /* the candidates, best first; the first `k` of them, and their ids */
    struct fusion_hit *hits;
    size_t count;
    struct found *found;
    struct texts ids;
    bool exact;      /* every vector that may be found was compared */
    int64_t pending; /* entries that could not be compared, because they have no vector yet */

    /* for the statements, and what they gave */
    int64_t width, most_compared, most_near, most_followed, most_worded, most_sampled, most_pending;
    const char *opening;
    struct texts lexemes, idfs;
    const struct rows *candidates, *entries;
};

/* The vector of a text in the service's own space. ERR_EMBEDDER_UNAVAILABLE: not now. Waits. */
enum err episodic_find_embed(struct call *c, struct finding *f, const char *text) must_check;
/* A vector of the caller's: checked, and brought to length 1. What is wrong with it is in c->problem, as a
 * fault of the fields `vector` and `model`. */
enum err episodic_find_set_vector(struct call *c, struct finding *f, const struct texts *vector,
                                  const char *model) must_check;
/* The row of an entry that others are to be like, if it was known then: its `question`, and its `direction`,
 * which is null while it waits for one; and that as what is looked for. */
SHARED_COLUMNS(episodic_similar_row, question, direction, model, dim);
enum err episodic_find_similar_row(struct call *c, const char *id, const char *as_of,
                                   struct rows **rows) must_check;
void episodic_find_set_row(struct finding *f, const struct rows *r);
/* Looks for it. Waits, so never inside a transaction. */
enum err episodic_find_run(struct call *c, struct finding *f) must_check;

/* The i-th of those that were found (`ids.count`), as the API shows it, with its score. */
void episodic_find_json(struct buf *out, const struct finding *f, size_t i);
/* The scores of all candidates, at most `most`, as a list. */
void episodic_find_candidates_json(struct buf *out, const struct finding *f, size_t most);

#endif

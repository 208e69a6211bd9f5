/* Recall of similar past situations: a route of its own, and a part of the context. */
#ifndef DAYBOOK_HANDLERS_RECALL_RECALL_H
#define DAYBOOK_HANDLERS_RECALL_RECALL_H

#include "core/ledger/recall.h"
#include "server/dispatch/call.h"

/* The situations of a deployment, or (`skill`) of all deployments of its skill version. */
struct situations_scope {
    const char *id, *skill_id, *version;
    bool skill;
};

/* A recall: its query and its result. The caller sets the first group and zeroes the rest. */
struct recall {
    struct situations_scope scope;
    const char *as_of, *query_text, *symbol, *side, *regime, *min_similarity;
    int64_t k;
    /* parameters of the statements */
    const char *query_vector, *query_model;
    int64_t query_dim, max_compared, max_word_matches;
    /* the result */
    const char *degraded; /* why words were compared instead of vectors, or NULL */
    const struct rows *rows;
    struct recall_item *items;
    size_t count;
    int64_t pending; /* situations that were not compared because they have no vector yet */
    struct recall_evidence evidence;
};

enum { RECALL_TOKENS = 500 }; /* default limit of the section */

/* Searches the situations of a deployment, with the defaults of the route. If pending situations were left
 * out, c->reply is marked as not cacheable. Waits, so never inside a transaction. */
enum err recall_text_at(struct call *c, const char *deployment_id, const char *as_of, const char *text,
                        struct recall *r) must_check;

/* Appends the members of an object: "query":…,…,"mean_return_pct":… */
void recall_json(struct buf *out, struct call *c, const struct recall *r);

#endif

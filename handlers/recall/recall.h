/* Past situations like the present one, as an answer of its own or as a part of another. */
#ifndef DAYBOOK_HANDLERS_RECALL_RECALL_H
#define DAYBOOK_HANDLERS_RECALL_RECALL_H

#include "core/ledger/recall.h"
#include "server/dispatch/call.h"

/* Whose situations: those of a deployment, or (`skill`) of all deployments of its version of the skill. */
struct situations_scope {
    const char *id, *skill_id, *version;
    bool skill;
};

/* What is asked for; what is found. Zero but for what is asked. */
struct recall {
    struct situations_scope scope;
    const char *as_of, *query, *symbol, *side, *regime, *min_similarity;
    int64_t k;
    /* for the statements */
    const char *direction, *space, *words;
    int64_t dim, most_compared, most_worded;
    /* found */
    const char *degraded; /* why it was not compared by meaning; NULL: it was */
    const struct rows *rows;
    struct recall_item *items;
    size_t count;
    int64_t left_out; /* situations that were not compared, because they have no vector yet */
    struct recall_evidence evidence;
};

enum { RECALL_TOKENS = 500 }; /* of the section, unless the caller says otherwise */

/* Looks for a text among the situations of a deployment, with the defaults of the route. An answer that lacks
 * situations is not to be cached: c->reply says so. Waits, so never inside a transaction. */
enum err recall_text_at(struct call *c, const char *deployment_id, const char *as_of, const char *text,
                        struct recall *r) must_check;

/* Appends the members of an object: "query":…,…,"mean_return_pct":… */
void recall_json(struct buf *out, struct call *c, const struct recall *r);

#endif

/* The vectors of situations: made when there is time, or when they are asked for. */
#ifndef DAYBOOK_HANDLERS_RECALL_SITUATION_H
#define DAYBOOK_HANDLERS_RECALL_SITUATION_H

#include "server/call.h"

/* Whose situations: those of a deployment, or (`skill`) of all deployments of its version of the skill. */
struct situations_scope {
    const char *id, *skill_id, *version;
    bool skill;
};

/* The deployment has opened trades: their situations are embedded after the answer, when the loop has nothing
 * else to do and the built-in embedder is in use. */
void situations_embed_later(struct call *c, const struct situations_scope *scope);

/* Embeds the newest `most` of those until `as_of` that wait for a vector, unless another call of this loop is
 * doing so. It is done in passing: what goes wrong is left for the next request, and an error says that the
 * call may not wait any longer. Not inside a transaction. */
enum err situations_embed_pending(struct call *c, const struct situations_scope *scope, const char *as_of,
                                  int64_t most) must_check;

#endif

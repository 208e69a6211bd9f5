/* One background job per process embeds pending entries, memories and situations. Requests store a row
 * without a vector, notify the job and never wait for it. */
#ifndef DAYBOOK_SERVER_BACKFILL_H
#define DAYBOOK_SERVER_BACKFILL_H

#include "server/loop.h"

/* Opens the job on the loop that runs it. Call it before any loop starts. False: no descriptor. If the
 * setting `backfill` is off there is no job, and the functions below do nothing. */
bool backfill_open(struct loop *loop);
/* Ends the job. Call it on the thread of that loop, before requests are drained. */
void backfill_stop(struct loop *loop);
/* Call it when all loops have ended. */
void backfill_close(void);

/* The rest may be called on the thread of any loop. */

/* A row without a vector has been committed. */
void backfill_found(void);
/* The embedder has just made a vector: after a failure, the job retries at once. */
void backfill_embedder_recovered(void);

/* Situations that a recall left out because they are pending: those of a deployment, or (deployment_id NULL)
 * of all deployments of the skill version. An endpoint that charges embeds only these, unless the settings
 * say otherwise. */
struct backfill_situations {
    const char *owner, *skill_id, *version, *deployment_id;
};
void backfill_ask(const struct backfill_situations *situations);

#endif

/* The vectors that are pending, of entries and of situations: one job of the process makes them in the
 * background, until there are none. Requests store what has no vector yet, say so here, and never wait. */
#ifndef DAYBOOK_SERVER_BACKFILL_H
#define DAYBOOK_SERVER_BACKFILL_H

#include "server/loop.h"

/* Opened for the loop that does the work, before any loop starts; it begins when that loop turns. False: no
 * descriptor. With `backfill` off there is no job, and the functions below do nothing. */
bool backfill_open(struct loop *loop);
/* On the thread of that loop, before requests are drained: ends the job, whatever it waits for. */
void backfill_stop(struct loop *loop);
/* When all loops have ended. */
void backfill_close(void);

/* The rest may be called on the thread of any loop. */

/* Something without a vector has been committed. */
void backfill_found(void);
/* The embedder has just made a vector: after a failure it is tried again at once. */
void backfill_embedder_works(void);

/* Situations that a recall had to leave out, of a deployment or (deployment_id NULL) of all deployments of
 * the skill version. An endpoint that charges is only asked for these, unless the settings say otherwise. */
struct backfill_situations {
    const char *owner, *skill_id, *version, *deployment_id;
};
void backfill_ask(const struct backfill_situations *situations);

#endif

/* One background task per process seals the events of the journals: it numbers them and chains their hashes
 * (seal_journal). Requests store an event without a number and never wait for it. The task is apart from the
 * one that embeds, so that nothing that delays vectors delays the chain. */
#ifndef DAYBOOK_SERVER_SEALER_H
#define DAYBOOK_SERVER_SEALER_H

#include "server/loop.h"

/* Opens the task on the loop that runs it. Call it before any loop starts. False: no descriptor. */
bool sealer_open(struct loop *loop);
/* Ends the task. Call it on the thread of that loop, before requests are drained. */
void sealer_stop(struct loop *loop);
/* Call it when all loops have ended. */
void sealer_close(void);

/* An event has been committed. May be called on the thread of any loop. */
void sealer_found(void);

#endif

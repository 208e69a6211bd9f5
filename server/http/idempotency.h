/* Idempotency keys: a request that comes again is answered as the first time, and done once. */
#ifndef DAYBOOK_SERVER_HTTP_IDEMPOTENCY_H
#define DAYBOOK_SERVER_HTTP_IDEMPOTENCY_H

#include "server/call.h"

/* Runs the route's handler and stores its answer in one transaction, or replays the stored answer. A route
 * that asks a model runs without one: a claim says meanwhile that the key is in use, and the answer is stored
 * by the handler's own transaction, if it has been made by its end, else behind the handler. */
enum err idempotency_run(struct call *c) must_check;

/* For a handler that asks a model, before it answers: a part of its work failed with `err`, which the answer
 * tells beside the rest. Where that error alone would not be kept for the key, the answer is not either, so
 * that the same request can try again. */
void idempotency_failed_beside(struct call *c, enum err err);

#endif

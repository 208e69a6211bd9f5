/* Idempotency keys: a retry gets the reply of the first request, which is done once. */
#ifndef DAYBOOK_SERVER_DISPATCH_IDEMPOTENCY_H
#define DAYBOOK_SERVER_DISPATCH_IDEMPOTENCY_H

#include "server/call.h"

/* Runs the route and stores its reply in one transaction, or replays the stored reply. A route that asks a
 * model runs without a transaction: a claim marks the key as in use meanwhile. Its reply is stored by the
 * handler's own transaction (query_tx) if that makes it, else after the handler. */
enum err idempotency_run(struct call *c) must_check;

/* The last step of a transaction that makes the reply of such a route: stores the reply with it. */
enum err idempotency_settle(struct call *c) must_check;

/* For a handler that asks a model, before it answers: a part of its work failed with `err`, which the reply
 * reports beside the rest. If that error alone would not be stored, the reply is not stored either, so that a
 * retry can try again. */
void idempotency_failed_beside(struct call *c, enum err err);

#endif

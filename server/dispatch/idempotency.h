/* Idempotency keys: a request runs once, and a retry gets the stored reply. */
#ifndef DAYBOOK_SERVER_DISPATCH_IDEMPOTENCY_H
#define DAYBOOK_SERVER_DISPATCH_IDEMPOTENCY_H

#include "server/dispatch/call.h"

/* Runs the route and stores its reply in one transaction, or replays the stored reply. A route that asks a
 * model runs without a transaction: a claim marks the key as in use. Its reply is stored by the handler's own
 * transaction (query_tx) if the reply is made inside it, otherwise after the handler returns. */
enum err idempotency_run(struct call *c) must_check;

/* Stores the reply of such a route; call it as the last step of the transaction that makes the reply. */
enum err idempotency_settle(struct call *c) must_check;

/* For a handler that asks a model: part of its work failed with `err`, and the reply will report that beside
 * the results. If `err` as a reply would not be stored, this reply is not stored either, so that a retry runs
 * again. Call it before the reply is made. */
void idempotency_partial_failure(struct call *c, enum err err);

#endif

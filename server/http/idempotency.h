/* Idempotency keys: a request that comes again is answered as the first time, and done once. */
#ifndef DAYBOOK_SERVER_HTTP_IDEMPOTENCY_H
#define DAYBOOK_SERVER_HTTP_IDEMPOTENCY_H

#include "server/call.h"

/* Runs the route's handler and stores its answer in one transaction, or replays the stored answer. */
enum err idempotency_run(struct call *c) must_check;

#endif

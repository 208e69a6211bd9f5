/* The decision context, for other resources. */
#ifndef DAYBOOK_HANDLERS_LEDGER_CONTEXT_H
#define DAYBOOK_HANDLERS_LEDGER_CONTEXT_H

#include "server/dispatch/call.h"

#define CONTEXT_TOKENS 2000 /* the default budget */

/* Appends what GET /v1/decision_snapshots/{id}/context returns as text without parameters. Only in a
 * coroutine. */
enum err context_of_snapshot(struct call *c, const char *snapshot_id, struct buf *text,
                             size_t *tokens) must_check;

#endif

/* Reflection on a deployment, as the endpoint and a tick ask for it. */
#ifndef DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H
#define DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H

#include "core/reflect/reflect_note.h"
#include "server/call.h"

enum { REFLECTION_TRADES_MAX = 1000 }; /* the newest trades, which one reflection looks at */

struct reflection_ask {
    const char *deployment_id, *as_of; /* as_of NULL: the deployment's now */
    bool force, dry_run;
    slot_set suppressed;
    int64_t max_trades;
};

/* Reflects, stores the outcome and appends the response, an object. Waits, so never inside a transaction.
 * Errors: ERR_NOT_FOUND, ERR_REFLECTION_RUNNING, ERR_TIME_ORDER (`as_of` is before the active note), or that
 * the outcome could not be stored. A failure of the model is an outcome, not an error. */
enum err reflection_run(struct call *c, const struct reflection_ask *ask, struct buf *out) must_check;

/* Checks that all are names of slots; `field` is their field in the request. */
enum err slots_check(struct call *c, const char *field, const struct texts *names) must_check;
/* The set of checked names; and the names of a set, in the order of a note. */
slot_set slots_named(const struct texts *names);
struct texts slot_names(struct arena *arena, slot_set slots);

#endif

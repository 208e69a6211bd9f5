/* Reflection on a deployment, for its endpoint and for ticks. */
#ifndef DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H
#define DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H

#include "core/reflect/reflect_note.h"
#include "server/dispatch/call.h"

enum { REFLECTION_TRADES_MAX = 1000 }; /* newest trades that one reflection reads */

struct reflection_request {
    const char *deployment_id, *as_of; /* as_of NULL: the current time of the deployment */
    bool force, dry_run;
    slot_set suppressed;
    int64_t max_trades;
};

/* Reflects, stores the outcome and appends the response object. Waits for a model, so never call it inside a
 * transaction. Errors: ERR_NOT_FOUND, ERR_REFLECTION_RUNNING, ERR_TIME_ORDER (`as_of` is before the active
 * note), or a failure to store the outcome. A failure of the model is an outcome, not an error. */
enum err reflection_run(struct call *c, const struct reflection_request *ask, struct buf *out) must_check;

/* Checks that all names are slots; `field` is the name of the request field. */
enum err reflection_check_slots(struct call *c, const char *field, const struct texts *names) must_check;
/* The set of checked names; and the names of a set, in the order of a note. */
slot_set reflection_slot_set(const struct texts *names);
struct texts reflection_slot_names(struct arena *arena, slot_set slots);

#endif

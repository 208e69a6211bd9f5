/* Reflection on a deployment, as the endpoint and a tick ask for it. */
#ifndef DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H
#define DAYBOOK_HANDLERS_REFLECTION_REFLECTION_H

#include "core/reflect/reflect_note.h"
#include "db/db.h"

enum { REFLECTION_TRADES_MAX = 1000 }; /* that one reflection looks at, the newest */

struct reflection_ask {
    const char *deployment_id, *as_of; /* as_of NULL: the deployment's now */
    bool force, dry_run;
    slot_set suppressed;
    int64_t max_trades;
};

/* Does it, stores what came of it, and appends the answer: an object. Waits, so never inside a transaction.
 * ERR_NOT_FOUND, ERR_REFLECTION_RUNNING, ERR_TIME_ORDER (an `as_of` before the active note), or that the
 * outcome could not be stored; what a model does wrong is an outcome, no error. */
enum err reflection_run(struct call *c, const struct reflection_ask *ask, struct buf *out) must_check;

/* Whether each of these is the name of a slot; `field` is where they stand in the request. */
enum err slots_check(struct call *c, const char *field, const struct texts *names) must_check;
/* The slots of a list of names, which were checked to be some; and the names of a set, in the order of a
 * note. */
slot_set slots_named(const struct texts *names);
struct texts slot_names(struct arena *arena, slot_set slots);

#endif

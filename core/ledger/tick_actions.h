/* The actions of a tick: changes of held positions that the engine executed for the agent. */
#ifndef DAYBOOK_CORE_LEDGER_TICK_ACTIONS_H
#define DAYBOOK_CORE_LEDGER_TICK_ACTIONS_H

#include "core/ledger/materialize.h"

/* Appends [{"symbol":…,"data":{…}}, …] in the order of symbols, and returns their number. `open` are the rows
 * before the tick. A position that opens was not held, so it is not listed; a flip is listed once, with the
 * side and the trade that it closed. The size of a flip is that of both. */
size_t tick_actions_json(struct buf *out, const struct trade *open, size_t open_count,
                         const struct tick *tick, const struct materialized *m);

#endif

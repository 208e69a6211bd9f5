/* The identity of a tick's content: a retry has the same hash, any other content at the same instant has not.
 */
#ifndef DAYBOOK_CORE_LEDGER_TICK_HASH_H
#define DAYBOOK_CORE_LEDGER_TICK_HASH_H

#include "core/ledger/materialize.h"

/* SHA-256 in hexadecimal digits. The order of positions, marks and fees and the spelling of numbers do not
 * matter; the instant, the snapshot id and the bars are not part of it. `lessons_hash` NULL: not given. */
const char *tick_hash(struct arena *arena, const struct tick *tick, struct quantity equity,
                      const char *lessons_hash);

#endif

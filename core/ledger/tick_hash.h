/* A hash of the content of a tick, to tell a retry from another tick at the same instant. */
#ifndef DAYBOOK_CORE_LEDGER_TICK_HASH_H
#define DAYBOOK_CORE_LEDGER_TICK_HASH_H

#include "core/ledger/materialize.h"

/* SHA-256 in hexadecimal digits. It does not depend on the order of positions, marks and fees, on the
 * notation of numbers, the instant, the snapshot id or the bars. `lessons_hash` NULL: not given. */
const char *tick_hash(struct arena *arena, const struct tick *tick, struct quantity equity,
                      const char *lessons_hash);

#endif

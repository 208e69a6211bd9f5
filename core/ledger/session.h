/* The counters of a deployment's session, carried from tick to tick: what the day began with, what it has
 * realized, what was executed, and the current losing streak. */
#ifndef DAYBOOK_CORE_LEDGER_SESSION_H
#define DAYBOOK_CORE_LEDGER_SESSION_H

#include "core/ledger/materialize.h"

struct session {
    int64_t last_tick_us; /* MATERIALIZE_NO_TICK: none yet */
    struct decimal day_start_equity, realized_today;
    int64_t executed_today; /* orders, on the UTC day of the last tick */
    int64_t losing_closes;  /* in a row; does not end with the day */
};

/* Counts a tick and its ops. The first tick of a UTC day starts the day with its equity. False when the PnL
 * of the day no longer fits into a decimal: `s` is then unchanged. */
bool session_count(struct session *s, const struct tick *tick, const struct materialized *m,
                   struct decimal equity);

/* Whether the counters of the day are those of the UTC day of `now_us`; on any other day nothing has happened
 * yet. */
bool session_is_today(const struct session *s, int64_t now_us);

/* Realized today, in percent of the equity that the day began with; not valid when that is not known. */
struct decimal session_pnl_pct(const struct session *s);

#endif

/* The counters of a deployment's session, carried from tick to tick: the equity at the start of the day, the
 * PnL realized and the orders executed since, and the current losing streak. */
#ifndef DAYBOOK_CORE_LEDGER_SESSION_H
#define DAYBOOK_CORE_LEDGER_SESSION_H

#include "core/ledger/materialize.h"

struct session {
    int64_t last_tick_us; /* MATERIALIZE_NO_TICK: none yet */
    struct decimal day_start_equity, realized_today;
    int64_t executed_today; /* orders, on the UTC day of the last tick */
    int64_t losing_closes;  /* in a row; does not end with the day */
};

/* Counts a tick and its ops. The first tick of a UTC day starts the day with its equity. False: the PnL of
 * the day does not fit into a decimal, and `s` is unchanged. */
bool session_count(struct session *s, const struct tick *tick, const struct materialized *m,
                   struct decimal equity);

/* Whether the last tick was on the UTC day of `now_us`. If not, the counters of that day are zero. */
bool session_is_today(const struct session *s, int64_t now_us);

/* Realized today, in percent of the equity at the start of the day; not valid if that is not known. */
struct decimal session_pnl_pct(const struct session *s);

#endif

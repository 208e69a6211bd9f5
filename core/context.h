/* The context of a decision: what an agent is shown of its own track record, within a budget of tokens. */
#ifndef DAYBOOK_CORE_CONTEXT_H
#define DAYBOOK_CORE_CONTEXT_H

#include <stddef.h>

#include "core/buf.h"
#include "core/risk_state.h"
#include "core/trade.h"

enum { CONTEXT_TRADES_MAX = 30, CONTEXT_REASON_CHARS = 120 };

struct context {
    int64_t now_us; /* of the tick that it is for */
    struct risk_state risk;
    const struct trade *closed; /* newest entry first; those beyond CONTEXT_TRADES_MAX are not shown */
    size_t closed_count;
    const struct trade *open; /* in the order they are to be shown */
    size_t open_count;
};

/* What the budget had room for. */
struct context_shown {
    size_t tokens; /* of the text: never more than the budget */
    bool risk;     /* its section was empty, or is there */
    size_t closed, open;
    size_t closed_omitted, open_omitted;
};

/* Appends the sections: recent activity, recent trades, open positions; one that would be empty is left out,
 * and between two of them is an empty line. What does not fit is dropped whole, line by line: the oldest
 * trades first, then the last positions, then the activity.
 *
 *   - 2026-06-04T10:00 → 12:30 BTC long $250 65,200 → 65,940 +$2.84 (+1.1%) 150m regime=… "entry reason"
 *   - ETH long $200 @ 3,410 mark=3,438 MFE=+$22 / MAE=-$8 held 30m "entry reason"
 *
 * Size and price are those of the entry, the percentage is that of the entry's size, an exit on another day
 * shows its date, and what is not known is left out. */
struct context_shown context_text(struct buf *out, const struct context *c, size_t max_tokens);

/* The same facts, of the trades and positions that are shown, as an object. Unknown is null. */
void context_json(struct buf *out, const struct context *c, const struct context_shown *shown);

#endif

/* The context of a decision: what an agent is shown of its own track record, within a budget of tokens. */
#ifndef DAYBOOK_CORE_LEDGER_CONTEXT_H
#define DAYBOOK_CORE_LEDGER_CONTEXT_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/ledger/risk_state.h"
#include "core/ledger/trade.h"

enum { CONTEXT_TRADES_MAX = 30, CONTEXT_REASON_CHARS = 120 };

/* What was distilled from the ledger, as it goes into a prompt. */
struct context_lessons {
    const char *text; /* NULL: there are none, or they are not wanted here */
    const char *note_id, *scope, *hash;
};

struct context {
    int64_t now_us; /* of the tick that it is for */
    struct risk_state risk;
    const struct trade *closed; /* newest entry first; those beyond CONTEXT_TRADES_MAX are not shown */
    size_t closed_count;
    const struct trade *open; /* in the order they are to be shown */
    size_t open_count;
    struct context_lessons lessons;
};

/* What the budget had room for. */
struct context_shown {
    size_t tokens; /* of the text: never more than the budget */
    bool risk;     /* its section is shown, or was empty */
    bool lessons;
    size_t lessons_tokens; /* of that section alone, shown or not */
    size_t closed, open;
    size_t closed_omitted, open_omitted;
};

/* Appends the sections: lessons, recent activity, recent trades, open positions; one that would be empty is
 * left out, and between two of them is an empty line. What does not fit is dropped: the oldest trades first
 * and then the last positions, line by line, then the lessons, which are there whole or not at all because
 * their hash names all of them, then the activity. The room of what is too large for the budget is for what
 * comes after it.
 *
 *   - 2026-06-04T10:00 → 12:30 BTC long $250 65,200 → 65,940 +$2.84 (+1.1%) 150m regime=… "entry reason"
 *   - ETH long $200 @ 3,410 mark=3,438 MFE=+$22 / MAE=-$8 held 30m "entry reason"
 *
 * Size and price are those of the entry, the percentage is that of the entry's size, an exit on another day
 * shows its date, and what is not known is left out. */
struct context_shown context_text(struct buf *out, const struct context *c, size_t max_tokens);

/* Which lessons they are, as an object; null where there are none. */
void context_lessons_json(struct buf *out, const struct context *c, const struct context_shown *shown);

/* The same facts, of the trades and positions that are shown, as members of an object. Unknown is null. */
void context_members(struct buf *out, const struct context *c, const struct context_shown *shown);

#endif

/* The decision context: the part of its own track record that an agent sees, within a token budget. */
#ifndef DAYBOOK_CORE_LEDGER_CONTEXT_H
#define DAYBOOK_CORE_LEDGER_CONTEXT_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/ledger/risk_state.h"
#include "core/ledger/trade.h"

enum { CONTEXT_TRADES_MAX = 30, CONTEXT_REASON_CHARS = 120 };

/* The lessons distilled from the ledger, as a section of a prompt. */
struct context_lessons {
    const char *text; /* NULL: none, or not requested */
    const char *note_id, *scope, *hash;
};

/* A section made by another part of the service. `put` appends at most `max_tokens`, and returns how many it
 * took. */
struct context_section {
    size_t (*put)(struct buf *out, void *arg, size_t max_tokens);
    void *arg;
};

struct context {
    int64_t now_us; /* time of the tick */
    struct risk_state risk;
    const struct trade *closed; /* newest entry first; at most CONTEXT_TRADES_MAX are shown */
    size_t closed_count;
    const struct trade *open; /* in display order */
    size_t open_count;
    struct context_lessons lessons;
    const struct context_section *journal; /* NULL: not requested */
};

/* What fitted into the budget. */
struct context_shown {
    size_t tokens; /* of the text: never more than the budget */
    bool risk;     /* the section is shown, or was empty */
    bool lessons;
    size_t lessons_tokens; /* of that section alone, shown or not */
    size_t closed, open;
    size_t closed_omitted, open_omitted;
};

/* Appends the sections lessons, recent activity, recent trades, open positions and journal, separated by
 * empty lines. Empty sections are left out. What exceeds the budget is dropped in this order: trades line by
 * line from the oldest, the journal, which shortens itself, positions line by line from the last, the
 * lessons, the activity. Lessons are shown whole or not at all, because their hash identifies the whole text.
 * The room of a dropped section goes to the next ones.
 *
 *   - 2026-06-04T10:00 → 12:30 BTC long $250 65,200 → 65,940 +$2.84 (+1.1%) 150m regime=… "entry reason"
 *   - ETH long $200 @ 3,410 mark=3,438 MFE=+$22 / MAE=-$8 held 30m "entry reason"
 *
 * Size and price are those of the entry. The percentage is relative to the entry size. An exit on another day
 * shows its date. Unknown values are left out. */
struct context_shown context_text(struct buf *out, const struct context *c, size_t max_tokens);

/* Appends an object that identifies the lessons, or null if there are none. */
void context_lessons_json(struct buf *out, const struct context *c, const struct context_shown *shown);

/* Appends the shown trades and positions as JSON members. Unknown values are null. */
void context_members(struct buf *out, const struct context *c, const struct context_shown *shown);

#endif

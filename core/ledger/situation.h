/* The situation in which a trade was opened, as a short text for semantic search. */
#ifndef DAYBOOK_CORE_LEDGER_SITUATION_H
#define DAYBOOK_CORE_LEDGER_SITUATION_H

#include "core/ledger/session.h"

enum {
    SITUATION_CHARS = 1000,       /* maximum length of a summary */
    SITUATION_REASON_CHARS = 400, /* of the reason. It comes last: the rest of the line is untrusted text */
    SITUATION_OTHERS_SHOWN = 4,   /* the others are counted */
};

struct situation_position {
    const char *symbol, *side;
};

/* What is known when a trade is opened, and nothing later. Unknown: NULL, not given, or not valid. */
struct situation {
    const char *symbol; /* the only one that must be known */
    const char *side, *regime, *reason;
    struct quantity size_usd, leverage;
    bool has_time;
    int64_t at_us;
    int64_t losing_closes;      /* in a row, before it; 0: none, or not known */
    struct decimal day_pnl_pct; /* realized today, in percent of the equity at the start of the day */
    const struct situation_position *others; /* the other open positions */
    size_t other_count;
};

/* Appends the summary, in one line:
 *
 *   BTC long, uptrend with low volatility, $2,608 at 3x, Thursday 10h UTC, after 2 losing closes, day -0.42%,
 *   also open: ETH short and 1 more. Reason: breakout above prior swing high
 *
 * Unknown and zero values are left out. */
void situation_text(struct buf *out, const struct situation *s);

/* Sets `situation` of the trades that the last tick of the session opened. The summary also names the other
 * open trades, including those of the same tick. */
void situation_describe_opened(struct arena *arena, struct trade *open, size_t count,
                               const struct session *session);

/* The outcome of a trade, after fees. */
struct situation_outcome {
    struct decimal net_usd, return_pct; /* not valid: not known */
    struct decimal holding_minutes;
    const char *exit_reason;
};

/* The outcome of a closed trade: its PnL less its fees, also in percent of the size at entry. */
struct situation_outcome situation_outcome_of(struct decimal realized_usd, struct decimal fees_usd,
                                              struct decimal size_usd);

/* Appends `+$26.40 (+1.0%) in 150m, exit "target reached"`. */
void situation_outcome_text(struct buf *out, const struct situation_outcome *o);

#endif

/* A trade: one row of the ledger, from the tick that opened it to the tick that closed it. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_H
#define DAYBOOK_CORE_LEDGER_TRADE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ledger/quantity.h"

enum trade_side { TRADE_LONG, TRADE_SHORT, TRADE_SIDES };
extern const char *const trade_side_names[TRADE_SIDES + 1]; /* NULL-terminated */

/* Texts that are not known are NULL. */
struct trade {
    const char *id; /* NULL: not stored */
    const char *symbol;
    enum trade_side side;

    /* Entry: set by the tick that opened the trade, never changed later. */
    int64_t entry_tick_us;
    struct quantity entry_price;    /* stated by the broker, else the mark */
    struct quantity entry_size_usd; /* the size at entry times entry_price */
    struct quantity entry_leverage;
    const char *entry_reason;
    const char *entry_snapshot_id;
    const char *entry_regime_tag, *entry_lessons_hash; /* set by the caller */
    const char *situation; /* as text, of a trade that is not stored yet: see core/ledger/situation.h */

    /* The current state; after the close, the final one. */
    struct quantity size_base;           /* 0 when closed */
    struct quantity average_entry_price; /* of the current size */
    struct quantity realized_pnl_usd;    /* by partial closes so far; after the close, of the whole trade */
    struct quantity mark_price;          /* the last known mark */
    struct decimal mfe_usd, mae_usd;     /* mfe is at least zero, mae at most */
    struct decimal fees_usd;             /* not in the PnL */

    /* Exit: not set while open. */
    int64_t exit_tick_us;
    struct quantity exit_price;
    const char *exit_reason;
    const char *exit_snapshot_id;
    struct decimal holding_minutes; /* to six digits */
};

/* A position as the broker states it. */
struct position {
    const char *symbol;
    enum trade_side side;
    struct quantity size_base; /* 0 is the same as no position; never negative */
    struct quantity mark_price;
    struct quantity leverage, entry_price, realized_pnl_usd; /* where given */
};

/* The accounting. A number that does not fit becomes invalid: check trade_is_valid at the end. */

/* Opens the trade of a position at this mark. A realized PnL that the broker states is used, because a tick
 * may have been missed. */
struct trade trade_open(const struct position *p, struct quantity mark);
/* Updates the trade to the position of the same symbol and side: size, average entry, realized PnL, extremes.
 * An add sets the average to the entry_price that the broker states, which is an average too, or else counts
 * the added size at the mark. A reduction realizes PnL at the mark. A realized PnL that the broker states is
 * that of the trade so far and takes precedence. */
void trade_follow(struct trade *t, const struct position *p, struct quantity mark);
/* Closes the trade at this price. `stated`: the broker's realized PnL of the whole trade, if given. */
void trade_close(struct trade *t, struct quantity price, struct quantity stated, int64_t tick_us);
/* From one instant to another, to six digits. */
struct decimal trade_minutes(int64_t from_us, int64_t to_us);
bool trade_is_valid(const struct trade *t);

#endif

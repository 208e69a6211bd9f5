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

    /* Entry: as the tick that started the trade found it, never changed by what follows. */
    int64_t entry_tick_us;
    struct quantity entry_price;    /* stated by the broker, else the mark */
    struct quantity entry_size_usd; /* the size at entry times entry_price */
    struct quantity entry_leverage;
    const char *entry_reason;
    const char *entry_snapshot_id;
    const char *entry_regime_tag, *entry_lessons_hash; /* stamped by the caller */
    const char *situation; /* in words, of a trade that is not stored yet: see core/ledger/situation.h */

    /* Now; at the close, as it was left. */
    struct quantity size_base;           /* 0 when closed */
    struct quantity average_entry_price; /* of what is held */
    struct quantity realized_pnl_usd;    /* by partial closes so far; when closed, of the whole trade */
    struct quantity mark_price;          /* the last one known */
    struct decimal mfe_usd, mae_usd;     /* never below, never above zero */
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

/* The accounting. Each of these leaves numbers that are not valid where something did not fit:
 * trade_is_valid says so at the end. */

/* The trade that a position starts at this mark. Realized PnL that the broker states is taken over: a tick
 * may have been missed. */
struct trade trade_open(const struct position *p, struct quantity mark);
/* Follows the position of the same symbol and side: size, average entry, PnL realized by a reduction,
 * extremes. An add moves the average: to the entry_price that the broker states, which is the average of what
 * it holds, else by what was added at the mark. A reduction realizes at the mark. A realized PnL that the
 * broker states is that of the trade so far and wins. */
void trade_follow(struct trade *t, const struct position *p, struct quantity mark);
/* Ends the trade at this price; `stated` is the broker's realized PnL of the whole trade, where given. */
void trade_close(struct trade *t, struct quantity price, struct quantity stated, int64_t tick_us);
/* From one instant to another, to six digits. */
struct decimal trade_minutes(int64_t from_us, int64_t to_us);
bool trade_is_valid(const struct trade *t);

#endif

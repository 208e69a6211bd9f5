/* The materializer: computes what the portfolio of a tick changes in the ledger. */
#ifndef DAYBOOK_CORE_LEDGER_MATERIALIZE_H
#define DAYBOOK_CORE_LEDGER_MATERIALIZE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/ledger/trade.h"
#include "core/ledger/trade_label.h"

enum {
    MATERIALIZE_POSITIONS_MAX = 200, /* of open rows, and of positions */
    MATERIALIZE_AMOUNTS_MAX = 1000,  /* of marks, and of fees */
};

#define MATERIALIZE_NO_TICK INT64_MIN /* the ledger has no tick yet */

/* A price or a fee of one symbol. */
struct symbol_amount {
    const char *symbol;
    struct quantity amount;
};

/* One tick. Trades that open or close get its `snapshot_id`, which is not checked. */
struct tick {
    int64_t tick_us;
    const char *snapshot_id;
    struct trade_intent intent;
    const struct position *positions;
    size_t position_count;
    const struct symbol_amount *marks; /* prices above zero; the first one of a symbol is used */
    size_t mark_count;
    const struct symbol_amount *fees; /* paid since the previous tick; fees of one symbol add up */
    size_t fee_count;
};

enum trade_op_kind { TRADE_OPEN, TRADE_UPDATE, TRADE_CLOSE, TRADE_OP_KINDS };
enum size_change { SIZE_SAME, SIZE_ADDED, SIZE_REDUCED, SIZE_CHANGES };
enum mark_source { MARK_POSITION, MARK_MARKS, MARK_LAST_KNOWN, MARK_SOURCES };
enum pnl_source { PNL_COMPUTED, PNL_BROKER, PNL_SOURCES };

/* In the order of the enums, NULL-terminated. */
extern const char *const trade_op_names[TRADE_OP_KINDS + 1];
extern const char *const size_change_names[SIZE_CHANGES + 1];
extern const char *const mark_source_names[MARK_SOURCES + 1];
extern const char *const pnl_source_names[PNL_SOURCES + 1];

struct trade_op {
    enum trade_op_kind kind;
    bool flip; /* set on the close and on the open that follows it */
    enum size_change change;
    enum mark_source mark_source;
    enum pnl_source pnl_source; /* of realized_pnl_usd: stated by the broker in this tick, or computed */
    struct decimal realized;    /* PnL realized in this tick: of the closed part, or as stated */
    struct trade trade;         /* the row after the op */
};

/* The ops are sorted by symbol (byte order); the close of a flip comes before its open. Every symbol held
 * before or after the tick has an op, so the trades of all ops except closes are the open rows. */
struct materialized {
    struct trade_op *ops;
    size_t op_count;
    struct symbol_amount *stray_fees; /* of symbols without an op: no trade of theirs is open */
    size_t stray_count;
    const char *symbol; /* on failure: the symbol at fault, or NULL */
};

enum materialize_status {
    MATERIALIZED,
    MATERIALIZE_SAME_TICK,  /* equal to `last_tick_us`: nothing to do */
    MATERIALIZE_OLDER_TICK, /* older than `last_tick_us` or than the entry of an open row */
    MATERIALIZE_TOO_MANY,
    MATERIALIZE_DUPLICATE_SYMBOL, /* in the positions, or in the open rows */
    MATERIALIZE_BAD_SIZE,         /* missing or negative */
    MATERIALIZE_BAD_PRICE, /* a mark or entry price is zero (at 18 digits) or negative, or there is no mark */
    MATERIALIZE_TOO_LARGE, /* a result has more than 20 digits before the decimal point */
};

/* A pure function. There are no ops unless it returns MATERIALIZED. The rules:
 *
 *   ledger   portfolio            ops
 *   -        long or short        open
 *   open     same side            update, whatever the size: adds and partial closes stay in one row
 *   open     opposite side        close and open, both marked as a flip
 *   open     -, or size 0         close
 *
 * The state before the tick is the ledger, not the previous portfolio. So the tick after a missed one repairs
 * the ledger: it applies all changes since the last tick at once.
 *
 * The mark is the mark_price of the position; else the price in `marks`; else the last known mark of the row;
 * else, for an open, the entry_price of the position. mark_source says which (entry_price counts as
 * MARK_POSITION).
 *
 * A position listed with size 0 closes at its mark_price with its realized_pnl_usd; an invalid mark_price is
 * ignored. A flip also closes at the mark; a realized PnL that the broker states belongs to the new position.
 *
 * MFE and MAE are (mark - average entry) * size, for the size before and the size after the fills of the
 * tick, including the exit. They start at zero.
 *
 * Fees are added to the row of their symbol. The fees of a flip are split between its two rows by size.
 *
 * What the arguments point to must outlive the ops. The caller sets the regime and the lessons hash of new
 * trades. To create a ledger from a portfolio, materialize it against no rows.
 */
enum materialize_status materialize(struct arena *arena, const struct trade *open, size_t open_count,
                                    const struct tick *tick, int64_t last_tick_us, struct materialized *out);

/* The open rows after the ops: the input of the next tick. */
struct trade *materialize_open_rows(struct arena *arena, const struct materialized *m, size_t *count);

/* Appends the op as the API returns it. */
void materialize_op_json(struct buf *out, const struct trade_op *op);

#endif

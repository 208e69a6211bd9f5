/* The materializer: what a tick's portfolio changes in the ledger. */
#ifndef DAYBOOK_CORE_LEDGER_MATERIALIZE_H
#define DAYBOOK_CORE_LEDGER_MATERIALIZE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/ledger/trade.h"
#include "core/ledger/trade_label.h"

enum {
    MATERIALIZE_POSITIONS_MAX = 200, /* open rows, and positions */
    MATERIALIZE_AMOUNTS_MAX = 1000,  /* marks, and fees */
};

#define MATERIALIZE_NO_TICK INT64_MIN /* no tick came before */

/* A price or a fee of one symbol. */
struct symbol_amount {
    const char *symbol;
    struct quantity amount;
};

/* One tick. Trades that open or close get its `snapshot_id`, unchecked. */
struct tick {
    int64_t tick_us;
    const char *snapshot_id;
    struct trade_intent intent;
    const struct position *positions;
    size_t position_count;
    const struct symbol_amount *marks; /* prices above zero; the first one of a symbol counts */
    size_t mark_count;
    const struct symbol_amount *fees; /* paid since the tick before; those of one symbol add up */
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
    bool flip; /* of the close and of the open that follows it */
    enum size_change change;
    enum mark_source mark_source;
    enum pnl_source pnl_source; /* who said realized_pnl_usd: the broker in this tick, or the ledger */
    struct decimal realized;    /* in this tick, by whatever was closed of the position, or as stated */
    struct trade trade;         /* the row as the op leaves it */
};

/* The ops by symbol (byte order), a flip's close before its open. Every symbol held before or after the tick
 * has an op, so the trades of the ops that are no close are the rows that are open now. */
struct materialized {
    struct trade_op *ops;
    size_t op_count;
    struct symbol_amount *stray_fees; /* of symbols without an op: their trade closed before, or never was */
    size_t stray_count;
    const char *symbol; /* of a refusal: where it was found, or NULL */
};

enum materialize_status {
    MATERIALIZED,
    MATERIALIZE_SAME_TICK,  /* of `last_tick_us`: nothing to do */
    MATERIALIZE_OLDER_TICK, /* than `last_tick_us`, or than the entry of an open row */
    MATERIALIZE_TOO_MANY,
    MATERIALIZE_DUPLICATE_SYMBOL, /* in the positions, or in the open rows */
    MATERIALIZE_BAD_SIZE,         /* not given or negative */
    MATERIALIZE_BAD_PRICE, /* a mark or entry price that is zero (at 18 digits) or negative; no mark at all */
    MATERIALIZE_TOO_LARGE, /* a result has more than 20 digits before the point */
};

/* A pure function of its arguments; with any status but MATERIALIZED there are no ops. The rules:
 *
 *   ledger   portfolio            ops
 *   -        long or short        open
 *   open     same side            update, whatever the size: adds and partial closes stay in the one row
 *   open     other side           close and open, both marked as a flip
 *   open     -, or size 0         close
 *
 * The state before the tick is the ledger's, not the last portfolio's: a tick that was missed heals with the
 * next, in which everything since then happens at once.
 *
 * The mark is the position's own mark_price; else that of `marks`; else the last known of the row; to open,
 * the position's entry_price at last. An op says which (the entry_price counts as the position's).
 *
 * A close of a position that is listed with size 0 takes mark_price and realized_pnl_usd from it, and ignores
 * a mark_price that is no price. A flip closes at the mark too; a realized PnL that the broker states in it
 * is that of the position it is stated of, the new one.
 *
 * MFE and MAE: (mark - average entry) times size, of the size before and of the size after the tick's fills,
 * the exit included; they begin at zero.
 *
 * Fees add to the row of their symbol; those of a flip are shared between its two rows by size.
 *
 * What the arguments point to must outlive the ops. Regime and lessons hash of a trade that opens are the
 * caller's to stamp on the op. A portfolio without a ledger becomes one by materializing it against no rows.
 */
enum materialize_status materialize(struct arena *arena, const struct trade *open, size_t open_count,
                                    const struct tick *tick, int64_t last_tick_us, struct materialized *out);

/* The rows that are open after the ops: what the next tick is given. */
struct trade *materialize_open_rows(struct arena *arena, const struct materialized *m, size_t *count);

/* The op as an answer of the API states it. */
void materialize_op_json(struct buf *out, const struct trade_op *op);

#endif

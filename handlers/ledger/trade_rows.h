/* Trades as JSON: in the response to a tick, in its snapshot, and read back from the database. */
#ifndef DAYBOOK_HANDLERS_LEDGER_TRADE_ROWS_H
#define DAYBOOK_HANDLERS_LEDGER_TRADE_ROWS_H

#include "core/ledger/materialize.h"
#include "server/dispatch/call.h"

/* Appends the list of open trades, [{…}]. */
void trade_rows_json(struct buf *out, const struct trade *rows, size_t count);

/* The same for the ops of a tick, and for the fees that belong to no trade. */
void trade_rows_ops_json(struct buf *out, const struct materialized *m);
void trade_rows_fees_json(struct buf *out, const struct materialized *m);

/* Reads such a list, as the database stores it, without loss of digits. Texts live in `arena`. Closed trades
 * also have exit_tick_at, exit_price, exit_reason, exit_snapshot_id, realized_pnl_usd and holding_minutes.
 * NULL is an empty list. ERR_INTERNAL: the text was not written by this service. */
enum err trade_rows_read(struct arena *arena, const char *json, struct trade **rows,
                         size_t *count) must_check;

#endif

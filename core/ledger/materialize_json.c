/* The ops of the materializer as an answer of the API states them. */
#include "core/ledger/json_put.h"
#include "core/ledger/materialize.h"

const char *const trade_op_names[TRADE_OP_KINDS + 1] = {
    [TRADE_OPEN] = "open_trade",
    [TRADE_UPDATE] = "update_trade",
    [TRADE_CLOSE] = "close_trade",
};
const char *const size_change_names[SIZE_CHANGES + 1] = {
    [SIZE_SAME] = "same",
    [SIZE_ADDED] = "added",
    [SIZE_REDUCED] = "reduced",
};
const char *const mark_source_names[MARK_SOURCES + 1] = {
    [MARK_POSITION] = "position",
    [MARK_MARKS] = "marks",
    [MARK_LAST_KNOWN] = "last_known",
};
const char *const pnl_source_names[PNL_SOURCES + 1] = {
    [PNL_COMPUTED] = "computed",
    [PNL_BROKER] = "broker",
};

static void put_flip(struct buf *out, const struct trade_op *op)
{
    buf_json_key(out, "flip");
    buf_json_bool(out, op->flip);
}

static void put_state(struct buf *out, const struct trade_op *op)
{
    const struct trade *t = &op->trade;
    json_put_quantity(out, "size_base", t->size_base);
    json_put_quantity(out, "average_entry_price", t->average_entry_price);
    json_put_quantity(out, op->kind == TRADE_CLOSE ? "realized_pnl_usd" : "realized_so_far_usd",
                      t->realized_pnl_usd);
    json_put_text(out, "pnl_source", pnl_source_names[op->pnl_source]);
    json_put_quantity(out, "mark_price", t->mark_price);
    json_put_text(out, "mark_source", mark_source_names[op->mark_source]);
    json_put_decimal(out, "mfe_usd", t->mfe_usd);
    json_put_decimal(out, "mae_usd", t->mae_usd);
    json_put_decimal(out, "fees_usd", t->fees_usd);
}

void materialize_op_json(struct buf *out, const struct trade_op *op)
{
    buf_text(out, "{");
    json_put_text(out, "op", trade_op_names[op->kind]);
    if (op->trade.id)
        json_put_text(out, "trade_id", op->trade.id);
    json_put_text(out, "symbol", op->trade.symbol);
    json_put_text(out, "side", trade_side_names[op->trade.side]);
    if (op->kind != TRADE_UPDATE)
        put_flip(out, op);
    if (op->kind == TRADE_OPEN)
        json_put_entry(out, &op->trade);
    if (op->kind == TRADE_CLOSE)
        json_put_exit(out, &op->trade);
    if (op->kind == TRADE_UPDATE)
        json_put_text(out, "change", size_change_names[op->change]);
    put_state(out, op);
    buf_text(out, "}");
}

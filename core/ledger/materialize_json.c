/* The ops of the materializer as JSON. */
#include "core/ledger/materialize.h"
#include "core/ledger/trade_members.h"

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

void materialize_op_json(struct buf *out, const struct trade_op *op)
{
    static const enum trade_form forms[] = { [TRADE_OPEN] = FORM_OP_OPEN,
                                             [TRADE_UPDATE] = FORM_OP_UPDATE,
                                             [TRADE_CLOSE] = FORM_OP_CLOSE };
    buf_char(out, '{');
    trade_members_json(out, forms[op->kind], &(struct trade_source){ .trade = &op->trade, .op = op });
    buf_char(out, '}');
}

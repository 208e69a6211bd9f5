/* The actions of a tick: changes of held positions that the engine executed for the agent. */
#include "core/ledger/tick_actions.h"

#include <string.h>

#include "core/base/json_put.h"

/* NULL: the op changed no position that was held. */
static const char *action_of(const struct trade_op *op)
{
    if (op->kind == TRADE_CLOSE)
        return op->flip ? "flip" : "close";
    if (op->kind != TRADE_UPDATE || op->change == SIZE_SAME)
        return NULL;
    return op->change == SIZE_ADDED ? "add" : "reduce";
}

static struct decimal size_before(const struct trade *open, size_t count, const char *symbol)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(open[i].symbol, symbol) == 0)
            return open[i].size_base.value;
    return decimal_from_int(0);
}

/* The size that was traded. The open of a flip follows its close. */
static struct decimal traded(struct decimal before, const struct trade_op *op)
{
    if (op->flip)
        return decimal_add(before, op[1].trade.size_base.value);
    struct decimal change = decimal_sub(op->trade.size_base.value, before);
    return decimal_sign(change) < 0 ? decimal_neg(change) : change;
}

static void put_action(struct buf *out, const struct trade_intent *intent, const struct trade_op *op,
                       const char *action, struct decimal size)
{
    buf_char(out, '{');
    json_put_text(out, "symbol", op->trade.symbol);
    buf_json_key(out, "data");
    buf_char(out, '{');
    json_put_text(out, "action", action);
    json_put_text(out, "side", trade_side_names[op->trade.side]);
    json_put_decimal(out, "size", size);
    json_put_text(out, "reason", intent->reason);
    json_put_text(out, "action_kind", intent->kind);
    json_put_text(out, "trade_id", op->trade.id);
    buf_text(out, "}}");
}

size_t tick_actions_json(struct buf *out, const struct trade *open, size_t open_count,
                         const struct tick *tick, const struct materialized *m)
{
    size_t count = 0;
    buf_char(out, '[');
    for (size_t i = 0; i < m->op_count; i++) {
        const struct trade_op *op = &m->ops[i];
        const char *symbol = op->trade.symbol, *action = action_of(op);
        if (!action || !trade_label_is_executed_on(&tick->intent, symbol))
            continue;
        buf_text(out, count++ ? "," : "");
        put_action(out, &tick->intent, op, action, traded(size_before(open, open_count, symbol), op));
    }
    buf_char(out, ']');
    return count;
}

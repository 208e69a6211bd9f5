/* The counters of a deployment's session, carried from tick to tick. */
#include "core/ledger/session.h"

#include "core/base/money.h"
#include "core/base/time_text.h"

bool session_is_today(const struct session *s, int64_t now_us)
{
    return s->last_tick_us != MATERIALIZE_NO_TICK && time_text_day(s->last_tick_us) == time_text_day(now_us);
}

bool session_count(struct session *s, const struct tick *tick, const struct materialized *m,
                   struct decimal equity)
{
    struct session next = *s;
    if (!session_is_today(s, tick->tick_us)) {
        next.day_start_equity = equity;
        next.realized_today = decimal_from_int(0);
        next.executed_today = 0;
    }
    next.last_tick_us = tick->tick_us;
    next.executed_today += trade_label_is_executed_order(&tick->intent);
    for (size_t i = 0; i < m->op_count; i++) {
        const struct trade_op *op = &m->ops[i];
        next.realized_today = decimal_add(next.realized_today, op->realized);
        if (op->kind == TRADE_CLOSE)
            next.losing_closes =
                decimal_sign(op->trade.realized_pnl_usd.value) < 0 ? next.losing_closes + 1 : 0;
    }
    if (!decimal_is_valid(next.realized_today))
        return false;
    *s = next;
    return true;
}

struct decimal session_pnl_pct(const struct session *s)
{
    return money_share(s->realized_today, s->day_start_equity);
}

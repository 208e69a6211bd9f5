/* The context of a decision as JSON: the same facts as its text. */
#include "core/base/money.h"
#include "core/ledger/context.h"
#include "core/ledger/json_put.h"

static void put_entry(struct buf *out, const struct trade *t)
{
    json_put_text(out, "symbol", t->symbol);
    json_put_text(out, "side", trade_side_names[t->side]);
    json_put_time(out, "entry_tick_at", t->entry_tick_us);
    json_put_quantity(out, "entry_size_usd", t->entry_size_usd);
    json_put_quantity(out, "entry_price", t->entry_price);
    json_put_text(out, "entry_reason", t->entry_reason);
    json_put_text(out, "regime", t->entry_regime_tag);
}

static void closed_json(struct buf *out, const struct trade *t, int64_t now_us)
{
    (void)now_us;
    put_entry(out, t);
    json_put_time(out, "exit_tick_at", t->exit_tick_us);
    json_put_quantity(out, "exit_price", t->exit_price);
    json_put_text(out, "exit_reason", t->exit_reason);
    json_put_quantity(out, "realized_pnl_usd", t->realized_pnl_usd);
    json_put_decimal(out, "pnl_pct",
                     decimal_round(money_share(t->realized_pnl_usd.value, t->entry_size_usd.value), 4));
    json_put_decimal(out, "fees_usd", t->fees_usd);
    json_put_decimal(out, "holding_minutes", t->holding_minutes);
}

static void open_json(struct buf *out, const struct trade *t, int64_t now_us)
{
    put_entry(out, t);
    json_put_quantity(out, "size_base", t->size_base);
    json_put_quantity(out, "average_entry_price", t->average_entry_price);
    json_put_quantity(out, "mark_price", t->mark_price);
    json_put_decimal(out, "mfe_usd", t->mfe_usd);
    json_put_decimal(out, "mae_usd", t->mae_usd);
    json_put_decimal(out, "held_minutes", trade_minutes(t->entry_tick_us, now_us));
}

typedef void put_trade(struct buf *out, const struct trade *t, int64_t now_us);

static void put_list(struct buf *out, const char *key, put_trade *put, const struct trade *trades,
                     size_t count, int64_t now_us)
{
    buf_json_key(out, key);
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i > 0 ? ",{" : "{");
        put(out, &trades[i], now_us);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void context_lessons_json(struct buf *out, const struct context *c, const struct context_shown *shown)
{
    if (!c->lessons.text) {
        buf_text(out, "null");
        return;
    }
    buf_char(out, '{');
    json_put_text(out, "note_id", c->lessons.note_id);
    json_put_text(out, "scope", c->lessons.scope);
    json_put_text(out, "lessons_hash", c->lessons.hash);
    buf_fmt(out, ",\"tokens\":%zu,\"shown\":%s}", shown->lessons_tokens, shown->lessons ? "true" : "false");
}

void context_members(struct buf *out, const struct context *c, const struct context_shown *shown)
{
    buf_json_key(out, "recent_activity");
    buf_char(out, '{');
    risk_state_members(out, &c->risk);
    buf_char(out, '}');
    put_list(out, "recent_trades", closed_json, c->closed, shown->closed, c->now_us);
    put_list(out, "open_positions", open_json, c->open, shown->open, c->now_us);
    json_put_int(out, "recent_trades_omitted", (int64_t)shown->closed_omitted);
    json_put_int(out, "open_positions_omitted", (int64_t)shown->open_omitted);
    buf_json_key(out, "recent_activity_omitted");
    buf_json_bool(out, !shown->risk);
}

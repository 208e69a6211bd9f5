/* The decision context as JSON: the same facts as its text. */
#include "core/ledger/context.h"
#include "core/base/json_put.h"
#include "core/ledger/trade_members.h"

static void put_list(struct buf *out, const char *key, enum trade_form form, const struct trade *trades,
                     size_t count, int64_t now_us)
{
    buf_json_key(out, key);
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i > 0 ? ",{" : "{");
        trade_members_json(out, form, &(struct trade_source){ .trade = &trades[i], .now_us = now_us });
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
    put_list(out, "recent_trades", FORM_CONTEXT_CLOSED, c->closed, shown->closed, c->now_us);
    put_list(out, "open_positions", FORM_CONTEXT_OPEN, c->open, shown->open, c->now_us);
    json_put_int(out, "recent_trades_omitted", (int64_t)shown->closed_omitted);
    json_put_int(out, "open_positions_omitted", (int64_t)shown->open_omitted);
    buf_json_key(out, "recent_activity_omitted");
    buf_json_bool(out, !shown->risk);
}

/* The situation in which a trade was opened, as a short text for semantic search. */
#include "core/ledger/situation.h"

#include <inttypes.h>

#include "core/base/line_text.h"
#include "core/base/money.h"
#include "core/base/time_text.h"
#include "core/ledger/regime.h"

enum { SYMBOL_CHARS = 64, SIDE_CHARS = 8, TAG_CHARS = 40, EXIT_CHARS = 80 };

static const char *const weekdays[] = { "Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday" };

/* In words, because an embedder does not know the tags. */
static const char *const regimes[REGIMES] = {
    [REGIME_TREND_UP_LOWVOL] = "uptrend with low volatility",
    [REGIME_TREND_UP_HIVOL] = "uptrend with high volatility",
    [REGIME_TREND_DOWN_LOWVOL] = "downtrend with low volatility",
    [REGIME_TREND_DOWN_HIVOL] = "downtrend with high volatility",
    [REGIME_CHOP_LOWVOL] = "sideways with low volatility",
    [REGIME_CHOP_HIVOL] = "sideways with high volatility",
};

static void put_position(struct buf *out, const char *symbol, const char *side)
{
    line_text(out, symbol, SYMBOL_CHARS);
    if (!side)
        return;
    buf_char(out, ' ');
    line_text(out, side, SIDE_CHARS);
}

static void put_regime(struct buf *out, const char *tag)
{
    if (!tag || strcmp(tag, regime_names[REGIME_UNKNOWN]) == 0)
        return;
    buf_text(out, ", ");
    for (size_t i = 0; i < REGIMES; i++)
        if (regimes[i] && strcmp(tag, regime_names[i]) == 0) {
            buf_text(out, regimes[i]);
            return;
        }
    line_text(out, tag, TAG_CHARS);
}

static bool is_positive(const struct quantity *q)
{
    return q->given && decimal_is_valid(q->value) && decimal_sign(q->value) > 0;
}

static void put_size(struct buf *out, const struct situation *s)
{
    const bool size = is_positive(&s->size_usd), leverage = is_positive(&s->leverage);
    if (size || leverage)
        buf_text(out, ", ");
    if (size)
        money_usd(out, s->size_usd.value);
    if (!leverage)
        return;
    buf_text(out, size ? " at " : "");
    money_price(out, decimal_round(s->leverage.value, 2));
    buf_char(out, 'x');
}

/* 1970-01-01 was a Thursday. */
static void put_time(struct buf *out, const struct situation *s)
{
    if (!s->has_time)
        return;
    const int64_t hour_us = INT64_C(3600000000), day = time_text_day(s->at_us);
    const int64_t weekday = ((day + 3) % 7 + 7) % 7, hour = (s->at_us - day * 24 * hour_us) / hour_us;
    buf_fmt(out, ", %s %" PRId64 "h UTC", weekdays[weekday], hour);
}

static void put_session(struct buf *out, const struct situation *s)
{
    if (s->losing_closes > 0)
        buf_fmt(out, ", after %" PRId64 " losing close%s", s->losing_closes, s->losing_closes > 1 ? "s" : "");
    if (!decimal_is_valid(s->day_pnl_pct) || decimal_sign(decimal_round(s->day_pnl_pct, 2)) == 0)
        return;
    buf_text(out, ", day ");
    money_percent(out, s->day_pnl_pct, 2);
}

static void put_others(struct buf *out, const struct situation *s)
{
    for (size_t i = 0; i < s->other_count && i < SITUATION_OTHERS_SHOWN; i++) {
        buf_text(out, i ? ", " : ", also open: ");
        put_position(out, s->others[i].symbol, s->others[i].side);
    }
    if (s->other_count > SITUATION_OTHERS_SHOWN)
        buf_fmt(out, " and %zu more", s->other_count - SITUATION_OTHERS_SHOWN);
}

void situation_text(struct buf *out, const struct situation *s)
{
    put_position(out, s->symbol, s->side);
    put_regime(out, s->regime);
    put_size(out, s);
    put_time(out, s);
    put_session(out, s);
    put_others(out, s);
    if (!s->reason)
        return;
    buf_text(out, ". Reason: ");
    line_text(out, s->reason, SITUATION_REASON_CHARS);
}

static const char *describe_trade(struct arena *arena, const struct trade *t, const struct trade *open,
                                  size_t count, const struct session *session)
{
    struct situation_position *others = arena_alloc(arena, count * sizeof *others);
    struct situation s = {
        .symbol = t->symbol,
        .side = trade_side_names[t->side],
        .regime = t->entry_regime_tag,
        .reason = t->entry_reason,
        .size_usd = t->entry_size_usd,
        .leverage = t->entry_leverage,
        .has_time = true,
        .at_us = t->entry_tick_us,
        .losing_closes = session->losing_closes,
        .day_pnl_pct = session_pnl_pct(session),
        .others = others,
    };
    for (size_t i = 0; i < count; i++)
        if (&open[i] != t)
            others[s.other_count++] =
                (struct situation_position){ open[i].symbol, trade_side_names[open[i].side] };
    struct buf text = { .arena = arena };
    situation_text(&text, &s);
    return buf_string(&text);
}

void situation_describe_opened(struct arena *arena, struct trade *open, size_t count,
                               const struct session *session)
{
    for (size_t i = 0; i < count; i++)
        if (open[i].entry_tick_us == session->last_tick_us)
            open[i].situation = describe_trade(arena, &open[i], open, count, session);
}

struct situation_outcome situation_outcome_of(struct decimal realized_usd, struct decimal fees_usd,
                                              struct decimal size_usd)
{
    const struct decimal net = decimal_sub(realized_usd, fees_usd);
    return (struct situation_outcome){ .net_usd = net, .return_pct = money_share(net, size_usd) };
}

void situation_outcome_text(struct buf *out, const struct situation_outcome *o)
{
    char minutes[DECIMAL_TEXT_SIZE];
    money_pnl(out, o->net_usd);
    if (decimal_is_valid(o->return_pct)) {
        buf_text(out, " (");
        money_percent(out, o->return_pct, 1);
        buf_char(out, ')');
    }
    decimal_fixed(o->holding_minutes, 0, minutes);
    buf_fmt(out, " in %sm", minutes);
    if (!o->exit_reason)
        return;
    buf_text(out, ", exit \"");
    line_text(out, o->exit_reason, EXIT_CHARS);
    buf_char(out, '"');
}

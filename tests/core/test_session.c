/* Session counters, tick by tick, and their use in the risk state and the situations. */
#include "core/ledger/risk_state.h"
#include "core/ledger/situation.h"
#include "tests/core/unit.h"

static struct arena arena;

static struct session fresh(void)
{
    return (struct session){ .last_tick_us = MATERIALIZE_NO_TICK };
}

static const char *text_of(struct decimal d)
{
    char *text = arena_alloc(&arena, DECIMAL_TEXT_SIZE);
    decimal_text(d, text);
    return text;
}

/* A tick without orders, with an equity of 1000, that closes one trade for each of these results. */
static bool count(struct session *s, const char *at, const char *const *results, size_t result_count)
{
    struct trade_op ops[8] = { 0 };
    for (size_t i = 0; i < result_count; i++)
        ops[i] = (struct trade_op){ .kind = TRADE_CLOSE,
                                    .realized = unit_number(results[i]).value,
                                    .trade.realized_pnl_usd = unit_number(results[i]) };
    const struct tick tick = { .tick_us = unit_time_us(at) };
    const struct materialized m = { .ops = ops, .op_count = result_count };
    return session_count(s, &tick, &m, decimal_from_int(1000));
}

#define COUNT(s, at, ...)                             \
    count((s), (at), (const char *[]){ __VA_ARGS__ }, \
          sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *))

START_TEST(a_day_starts_with_the_equity_of_its_first_tick)
{
    struct session s = fresh();
    const char *const at[] = { "2026-06-01T00:00:00Z", "2026-06-01T23:59:59.999999Z", "2026-06-02T00:00:00Z",
                               "2026-06-02T00:00:01Z", "2026-06-09T12:00:00Z" };
    const int64_t starts[] = { 0, 0, 2, 2, 4 };
    for (int64_t i = 0; i < 5; i++) {
        const struct tick tick = { .tick_us = unit_time_us(at[i]) };
        const struct materialized none = { 0 };
        ck_assert(session_count(&s, &tick, &none, decimal_from_int(i)));
        ck_assert_int_eq(s.last_tick_us, tick.tick_us);
        ck_assert_str_eq(text_of(s.day_start_equity), text_of(decimal_from_int(starts[i])));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_pnl_of_a_day_starts_at_zero_and_adds_up_partial_closes_too)
{
    struct session s = fresh();
    ck_assert(COUNT(&s, "2026-06-01T10:00:00Z", "12.5", "-2.5"));
    ck_assert_str_eq(text_of(s.realized_today), "10");
    struct trade_op reduced = { .kind = TRADE_UPDATE, .realized = decimal_from_int(-30) };
    const struct tick tick = { .tick_us = unit_time_us("2026-06-01T11:00:00Z") };
    const struct materialized m = { .ops = &reduced, .op_count = 1 };
    ck_assert(session_count(&s, &tick, &m, decimal_from_int(990)));
    ck_assert_str_eq(text_of(s.realized_today), "-20");
    ck_assert_str_eq(text_of(session_pnl_pct(&s)), "-2");
    ck_assert(COUNT(&s, "2026-06-02T00:00:00Z", "1"));
    ck_assert_str_eq(text_of(s.realized_today), "1");
    arena_release(&arena);
}
END_TEST

START_TEST(losing_closes_are_counted_across_days_until_one_does_not_lose)
{
    struct session s = fresh();
    ck_assert(COUNT(&s, "2026-06-01T10:00:00Z", "-1", "-2"));
    ck_assert_int_eq(s.losing_closes, 2);
    ck_assert(COUNT(&s, "2026-06-05T10:00:00Z", "-0.01"));
    ck_assert_int_eq(s.losing_closes, 3);
    ck_assert(COUNT(&s, "2026-06-05T10:01:00Z", "0"));
    ck_assert_int_eq(s.losing_closes, 0);
    ck_assert(COUNT(&s, "2026-06-05T10:02:00Z", "-1", "5", "-1"));
    ck_assert_int_eq(s.losing_closes, 1);
    arena_release(&arena);
}
END_TEST

START_TEST(executed_orders_are_counted_by_day)
{
    static const struct {
        const char *at, *kind, *engine;
        int64_t executed;
    } ticks[] = {
        { "2026-06-01T10:00:00Z", "open_position", "executed", 1 },
        { "2026-06-01T10:01:00Z", "open_position", "rejected", 1 },
        { "2026-06-01T10:02:00Z", "hold", "executed", 1 },
        { "2026-06-01T10:03:00Z", "close_position", "executed", 2 },
        { "2026-06-02T00:00:00Z", "open_position", "executed", 1 },
        { "2026-06-03T00:00:00Z", NULL, NULL, 0 },
    };
    struct session s = fresh();
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        const struct tick tick = { .tick_us = unit_time_us(ticks[i].at),
                                   .intent = { .kind = ticks[i].kind, .engine_kind = ticks[i].engine } };
        const struct materialized none = { 0 };
        ck_assert(session_count(&s, &tick, &none, decimal_from_int(1)));
        ck_assert_int_eq(s.executed_today, ticks[i].executed);
    }
}
END_TEST

START_TEST(a_pnl_overflow_leaves_the_session_unchanged)
{
    struct session s = fresh();
    const char *large = "99999999999999999999";
    ck_assert(COUNT(&s, "2026-06-01T10:00:00Z", "-1", large));
    const struct session before = s;
    ck_assert(!COUNT(&s, "2026-06-01T11:00:00Z", "-1", large));
    ck_assert_int_eq(s.last_tick_us, before.last_tick_us);
    ck_assert_int_eq(s.losing_closes, before.losing_closes);
    ck_assert(decimal_compare(s.realized_today, before.realized_today) == 0);
    ck_assert_msg(COUNT(&s, "2026-06-02T00:00:00Z", large), "another day begins at zero");
    arena_release(&arena);
}
END_TEST

/* ---- the risk state ---- */

START_TEST(the_risk_state_shows_the_figures_of_a_day_on_that_day_only)
{
    struct session s = fresh();
    ck_assert(COUNT(&s, "2026-06-01T10:00:00Z", "-5"));
    s.executed_today = 3;
    struct risk_state same = { 0 }, next = { 0 }, none = { 0 };
    risk_state_add_session(&same, &s, unit_time_us("2026-06-01T23:59:59Z"));
    ck_assert_int_eq(same.executed_today, 3);
    ck_assert_int_eq(same.losing_closes, 1);
    ck_assert(same.has_pnl_today);
    ck_assert_str_eq(text_of(same.pnl_today_pct), "-0.5");
    risk_state_add_session(&next, &s, unit_time_us("2026-06-02T00:00:00Z"));
    ck_assert_int_eq(next.executed_today, 0);
    ck_assert_int_eq(next.losing_closes, 1);
    ck_assert(!next.has_pnl_today);
    s = fresh();
    risk_state_add_session(&none, &s, unit_time_us("2026-06-01T10:00:00Z"));
    ck_assert(!none.has_pnl_today);
    arena_release(&arena);
}
END_TEST

START_TEST(rejections_are_counted_by_rule_and_the_last_five_keep_their_order)
{
    const char *rules[] = { "R6", "R3", "R3", "R1", "R3", "R6", "R2" }; /* the newest first */
    const char *const tail[] = { "R3", "R1", "R3", "R3", "R6" };
    static const struct rule_count counts[] = { { "R1", 1 }, { "R2", 1 }, { "R3", 3 }, { "R6", 2 } };
    struct risk_state r = { 0 };
    risk_state_add_rejections(&r, &arena, rules, 7);
    ck_assert_uint_eq(r.tail_count, RISK_REJECTIONS_TAIL);
    for (size_t i = 0; i < RISK_REJECTIONS_TAIL; i++)
        ck_assert_str_eq(r.tail[i], tail[i]);
    ck_assert_uint_eq(r.rule_count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(r.rejections[i].rule, counts[i].rule);
        ck_assert_int_eq(r.rejections[i].count, counts[i].count);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(few_or_no_rejections_are_counted)
{
    const char *rules[] = { "R2", "R1" };
    struct risk_state two = { 0 }, none = { 0 };
    risk_state_add_rejections(&two, &arena, rules, 2);
    ck_assert_uint_eq(two.tail_count, 2);
    ck_assert_str_eq(two.tail[0], "R1");
    ck_assert_str_eq(two.tail[1], "R2");
    ck_assert_ptr_null(risk_state_repeated(&two));
    risk_state_add_rejections(&none, &arena, rules, 0);
    ck_assert_uint_eq(none.tail_count + none.rule_count, 0);
    arena_release(&arena);
}
END_TEST

/* ---- situations ---- */

START_TEST(situations_are_written_only_for_trades_of_the_last_tick_and_name_all_other_positions)
{
    const int64_t now_us = unit_time_us("2026-06-04T10:00:00Z");
    struct trade open[] = {
        { .symbol = "BTC",
          .side = TRADE_LONG,
          .entry_tick_us = now_us,
          .entry_regime_tag = "chop_hivol",
          .entry_size_usd = unit_number("250"),
          .entry_reason = "breakout" },
        { .symbol = "ETH", .side = TRADE_SHORT, .entry_tick_us = now_us - 60000000 },
        { .symbol = "SOL", .side = TRADE_SHORT, .entry_tick_us = now_us },
    };
    const struct session s = { .last_tick_us = now_us,
                               .day_start_equity = decimal_from_int(1000),
                               .realized_today = decimal_from_int(-12),
                               .losing_closes = 2 };
    situation_describe_opened(&arena, open, 3, &s);
    ck_assert_str_eq(
        open[0].situation,
        "BTC long, sideways with high volatility, $250, Thursday 10h UTC, after 2 losing closes, "
        "day -1.20%, also open: ETH short, SOL short. Reason: breakout");
    ck_assert_ptr_null(open[1].situation);
    ck_assert_str_eq(open[2].situation, "SOL short, Thursday 10h UTC, after 2 losing closes, day -1.20%, "
                                        "also open: BTC long, ETH short");
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("session", a_day_starts_with_the_equity_of_its_first_tick,
          the_pnl_of_a_day_starts_at_zero_and_adds_up_partial_closes_too,
          losing_closes_are_counted_across_days_until_one_does_not_lose, executed_orders_are_counted_by_day,
          a_pnl_overflow_leaves_the_session_unchanged,
          the_risk_state_shows_the_figures_of_a_day_on_that_day_only,
          rejections_are_counted_by_rule_and_the_last_five_keep_their_order, few_or_no_rejections_are_counted,
          situations_are_written_only_for_trades_of_the_last_tick_and_name_all_other_positions)

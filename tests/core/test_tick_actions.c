/* The actions of a tick: which changes of held positions the engine executed for the agent. */
#include "core/ledger/tick_actions.h"

#include "tests/core/unit.h"

static struct arena arena;

static struct quantity amount(const char *text)
{
    struct quantity q;
    ck_assert_int_eq(quantity_take(&arena, text, &q), DECIMAL_EXACT);
    return q;
}

static const struct trade_intent adjust = { "adjust_position", "BTC", "more", "executed", NULL };

/* The actions of a tick on a long BTC of size 2: the position becomes `size`. NULL: it is not listed. */
static const char *actions(struct trade_intent intent, enum trade_side side, const char *size)
{
    struct position p = { .symbol = "BTC", .side = side, .mark_price = amount("100") };
    struct trade open;
    struct materialized m;
    p.size_base = amount("2");
    p.side = TRADE_LONG;
    open = trade_open(&p, p.mark_price);
    open.id = "trade";
    p.side = side;
    if (size)
        p.size_base = amount(size);
    const struct tick tick = {
        .tick_us = 1, .snapshot_id = "tick", .intent = intent, .positions = &p, .position_count = size ? 1 : 0
    };
    struct buf out = { .arena = &arena };
    ck_assert_int_eq(materialize(&arena, &open, 1, &tick, 0, &m), MATERIALIZED);
    const size_t count = tick_actions_json(&out, &open, 1, &tick, &m);
    ck_assert_uint_eq(count, strcmp(buf_string(&out), "[]") != 0);
    return buf_string(&out);
}

static void check(const char *got, const char *action, const char *size)
{
    const char *expected =
        arena_fmt(&arena,
                  "[{\"symbol\":\"BTC\",\"data\":{\"action\":\"%s\",\"side\":\"long\",\"size\":%s,"
                  "\"reason\":\"more\",\"action_kind\":\"adjust_position\",\"trade_id\":\"trade\"}}]",
                  action, size);
    ck_assert_str_eq(got, expected);
}

START_TEST(each_change_of_a_held_position_has_its_action_and_the_size_that_was_traded)
{
    check(actions(adjust, TRADE_LONG, "2.5"), "add", "0.5");
    check(actions(adjust, TRADE_LONG, "0.5"), "reduce", "1.5");
    check(actions(adjust, TRADE_LONG, "0"), "close", "2");
    check(actions(adjust, TRADE_LONG, NULL), "close", "2");
    check(actions(adjust, TRADE_SHORT, "3"), "flip", "5");
    arena_release(&arena);
}
END_TEST

START_TEST(without_a_change_or_an_executed_order_on_the_symbol_there_is_no_action)
{
    static const struct trade_intent others[] = {
        { "adjust_position", "BTC", "more", NULL, NULL },
        { "adjust_position", "BTC", "more", "rejected", "cap" },
        { "adjust_position", "BTC", "more", "flatten", NULL },
        { "adjust_position", "ETH", "more", "executed", NULL },
        { "hold", "BTC", "more", "executed", NULL },
        { NULL, NULL, NULL, "executed", NULL },
    };
    ck_assert_str_eq(actions(adjust, TRADE_LONG, "2.0"), "[]");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_str_eq(actions(others[i], TRADE_LONG, "3"), "[]");
    struct trade_intent any = adjust;
    any.symbol = NULL;
    check(actions(any, TRADE_LONG, "3"), "add", "1");
    arena_release(&arena);
}
END_TEST

START_TEST(a_position_that_opens_was_not_held)
{
    struct position p = { .symbol = "BTC", .size_base = amount("1"), .mark_price = amount("100") };
    const struct tick tick = {
        .tick_us = 1, .snapshot_id = "tick", .intent = adjust, .positions = &p, .position_count = 1
    };
    struct materialized m;
    struct buf out = { .arena = &arena };
    ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, 0, &m), MATERIALIZED);
    ck_assert_uint_eq(tick_actions_json(&out, NULL, 0, &tick, &m), 0);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("tick_actions", each_change_of_a_held_position_has_its_action_and_the_size_that_was_traded,
          without_a_change_or_an_executed_order_on_the_symbol_there_is_no_action,
          a_position_that_opens_was_not_held)

/* Statistics over closed trades. */
#include "core/ledger/trade_stats.h"
#include "tests/core/unit.h"

static void add(struct trade_stats *s, const char *gross, const char *fees, const char *minutes,
                const char *mfe)
{
    const struct trade_result r = { unit_number(gross).value, unit_number(fees).value,
                                    unit_number(minutes).value, unit_number(mfe).value };
    trade_stats_add(s, &r);
}

static const char *text(const struct trade_stats *s)
{
    static struct arena arena;
    struct buf out = { .arena = &arena };
    trade_stats_json(&out, s);
    return buf_string(&out);
}

START_TEST(no_trades_have_no_means)
{
    ck_assert_str_eq(
        text(&(struct trade_stats){ 0 }),
        "\"count\":0,\"wins\":0,\"losses\":0,\"win_rate\":null,\"gross_pnl_usd\":0,\"fees_usd\":0,"
        "\"net_pnl_usd\":0,\"expectancy_usd\":null,\"profit_factor\":null,\"max_drawdown_usd\":0,"
        "\"average_holding_minutes\":null,\"mfe_capture\":null");
}
END_TEST

START_TEST(figures_are_those_of_a_calculation_by_hand)
{
    struct trade_stats s = { 0 };
    add(&s, "10.00", "0.5", "60", "20");      /* 9.5: the peak */
    add(&s, "-4", "0.25", "30", "0");         /* -4.25 */
    add(&s, "0.25", "0.25", "10", "1");       /* 0: neither */
    add(&s, "-2", "0.0000001", "0.5", "8");   /* -2.0000001: the fall is 6.2500001 */
    add(&s, "3.1", "0.1", "1", "0.00000031"); /* 3 */
    ck_assert_str_eq(text(&s),
                     "\"count\":5,\"wins\":2,\"losses\":2,\"win_rate\":0.4,\"gross_pnl_usd\":7.35,"
                     "\"fees_usd\":1.1000001,\"net_pnl_usd\":6.2499999,\"expectancy_usd\":1.24999998,"
                     "\"profit_factor\":1.999999968,\"max_drawdown_usd\":6.2500001,"
                     "\"average_holding_minutes\":20.3,\"mfe_capture\":2500000.125");
}
END_TEST

START_TEST(a_drawdown_starts_at_zero)
{
    struct trade_stats s = { 0 };
    add(&s, "-5", "0", "1", "0");
    add(&s, "3", "0", "1", "0");
    add(&s, "-4", "0", "1", "0");
    ck_assert_ptr_nonnull(strstr(text(&s), "\"max_drawdown_usd\":6,"));
}
END_TEST

START_TEST(without_a_loss_there_is_no_profit_factor)
{
    struct trade_stats s = { 0 };
    add(&s, "5", "0", "1", "0");
    ck_assert_ptr_nonnull(strstr(text(&s), "\"profit_factor\":null,\"max_drawdown_usd\":0,"));
}
END_TEST

START_TEST(ratios_have_twelve_decimals)
{
    struct trade_stats s = { 0 };
    add(&s, "1", "0", "1", "3");
    add(&s, "1", "0", "1", "3");
    add(&s, "-1", "0", "2", "3");
    ck_assert_ptr_nonnull(strstr(text(&s), "\"win_rate\":0.666666666667,"));
    ck_assert_ptr_nonnull(strstr(text(&s), "\"average_holding_minutes\":1.333333333333,"));
    ck_assert_ptr_nonnull(strstr(text(&s), "\"mfe_capture\":0.111111111111"));
}
END_TEST

START_TEST(only_an_overflowing_figure_is_null)
{
    struct trade_stats s = { 0 };
    add(&s, "90000000000000000000", "0", "1", "0");
    add(&s, "90000000000000000000", "0", "2", "0");
    ck_assert_str_eq(text(&s), "\"count\":2,\"wins\":2,\"losses\":0,\"win_rate\":1,\"gross_pnl_usd\":null,"
                               "\"fees_usd\":0,\"net_pnl_usd\":null,\"expectancy_usd\":null,"
                               "\"profit_factor\":null,\"max_drawdown_usd\":null,"
                               "\"average_holding_minutes\":1.5,\"mfe_capture\":null");
}
END_TEST

START_TEST(groups_are_ordered_by_key_and_those_without_one_come_last)
{
    struct arena arena = { 0 };
    struct trade_groups g = { .arena = &arena };
    static const char *const keys[] = { "ETH", NULL, "BTC", "eth", "ETH", "", NULL };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        trade_stats_group(&g, keys[i])->count++;
    static const char *const order[] = { "", "BTC", "ETH", "eth", NULL };
    ck_assert_uint_eq(g.count, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_pstr_eq(g.items[i]->key, order[i]);
    ck_assert_int_eq(g.items[2]->stats.count, 2);
    ck_assert_int_eq(g.items[4]->stats.count, 2);
    ck_assert(!g.truncated);
    arena_release(&arena);
}
END_TEST

/* In any order of keys, the first thousand are kept, each with all of its trades. */
START_TEST(only_the_first_thousand_groups_are_kept)
{
    for (int step = 1; step < 4000; step += 1233) { /* 1 rises, the others jump */
        struct arena arena = { 0 };
        struct trade_groups g = { .arena = &arena };
        for (int i = 0; i < 6001; i++) {
            char key[32];
            snprintf(key, sizeof key, "k%05d", 3000 - i * step % 3001);
            struct trade_stats *s = trade_stats_group(&g, key);
            if (s)
                s->count++;
        }
        ck_assert_uint_eq(g.count, TRADE_GROUPS);
        ck_assert(g.truncated);
        for (size_t i = 0; i < g.count; i++) {
            char key[32];
            snprintf(key, sizeof key, "k%05zu", i);
            ck_assert_str_eq(g.items[i]->key, key);
        }
        arena_release(&arena);
    }
}
END_TEST

UNIT_MAIN("trade_stats", no_trades_have_no_means, figures_are_those_of_a_calculation_by_hand,
          a_drawdown_starts_at_zero, without_a_loss_there_is_no_profit_factor, ratios_have_twelve_decimals,
          only_an_overflowing_figure_is_null, groups_are_ordered_by_key_and_those_without_one_come_last,
          only_the_first_thousand_groups_are_kept)

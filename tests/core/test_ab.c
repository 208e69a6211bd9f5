/* Statistics of revisions: known answers, and honesty on trades that differ by chance alone. */
#include <math.h>
#include <stdbool.h>

#include "core/ab.h"
#include "tests/core/unit.h"

enum { SKILLS = 1000, REVISIONS = 6, TRADES = 30 };

static uint64_t chance_state;

static double chance(void)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance_state >> 11) / 9007199254740992.0;
}

/* Trades as they are: many small losses, few large gains, on average nothing. */
static double trade(double edge)
{
    double u = chance();
    return (u < 0.65 ? -10 - 10 * chance() : 20 + 15.72 * chance()) + edge;
}

START_TEST(a_group_is_summarised)
{
    const double values[] = { 10, -5, 20, -5, 0, 10 };
    double scratch[6];
    struct ab_summary s = ab_summarise(values, 6, 1, scratch);
    ck_assert_uint_eq(s.count, 6);
    ck_assert_double_eq(s.mean, 5);
    ck_assert_double_eq(s.median, 5);
    ck_assert_double_eq(s.win_rate, 0.5);
    ck_assert_double_eq(s.profit_factor, 4);
    ck_assert_double_lt(s.low, 5);
    ck_assert_double_gt(s.high, 5);
}
END_TEST

START_TEST(what_cannot_be_known_is_no_number)
{
    const double gains[] = { 1, 2, 3 };
    double scratch[8];
    ck_assert(isnan(ab_summarise(gains, 3, 1, scratch).profit_factor));
    ck_assert(isnan(ab_summarise(gains, 0, 1, scratch).mean));
    ck_assert(isnan(ab_difference_p(gains, 0, gains, 3, 1, scratch)));
}
END_TEST

START_TEST(the_order_of_the_trades_changes_nothing_and_the_seed_is_all_the_chance)
{
    double forward[50], backward[50], scratch[50];
    for (int i = 0; i < 50; i++)
        forward[i] = backward[49 - i] = trade(0);
    struct ab_summary a = ab_summarise(forward, 50, 7, scratch), b = ab_summarise(backward, 50, 7, scratch);
    ck_assert_double_eq(a.low, b.low);
    ck_assert_double_eq(a.high, b.high);
    ck_assert_double_ne(a.low, ab_summarise(forward, 50, 8, scratch).low);
    ck_assert_uint_ne(ab_seed(forward, 50, 0), ab_seed(backward, 50, 0));
}
END_TEST

/* Of three and three numbers that do not overlap, 2 of the 20 ways to part them are as far apart. */
START_TEST(a_small_difference_has_its_exact_p)
{
    const double a[] = { 1, 2, 3 }, b[] = { 10, 11, 12 };
    double scratch[6], p = ab_difference_p(a, 3, b, 3, 3, scratch);
    ck_assert_double_eq_tol(p, 0.1, 0.05);
    ck_assert_double_eq(p, ab_difference_p(b, 3, a, 3, 3, scratch));
    ck_assert_double_eq(ab_difference_p(a, 3, a, 3, 3, scratch), 1);
}
END_TEST

START_TEST(many_comparisons_are_corrected_by_holm)
{
    double p[] = { 0.01, 0.04, NAN, 0.03, 0.005, 0.03 }, scratch[12];
    const double wanted[] = { 0.04, 0.09, NAN, 0.09, 0.025, 0.09 };
    ab_correct(p, 6, scratch);
    for (int i = 0; i < 6; i++)
        if (isnan(wanted[i]))
            ck_assert(isnan(p[i]));
        else
            ck_assert_double_eq_tol(p[i], wanted[i], 1e-12);
    double large[] = { 0.7, 0.9 };
    ab_correct(large, 2, scratch);
    ck_assert_double_eq(large[0], 1);
    ck_assert_double_eq(large[1], 1);
}
END_TEST

/* True when any revision of a skill seems to differ from the one before it. The last one has an edge. */
static bool seems_to_differ(double edge)
{
    double trades[REVISIONS][TRADES], p[REVISIONS - 1], scratch[2 * TRADES];
    for (int r = 0; r < REVISIONS; r++)
        for (int i = 0; i < TRADES; i++)
            trades[r][i] = trade(r == REVISIONS - 1 ? edge : 0);
    for (int r = 1; r < REVISIONS; r++) {
        uint64_t seed = ab_seed(trades[r], TRADES, ab_seed(trades[r - 1], TRADES, 0));
        p[r - 1] = ab_difference_p(trades[r - 1], TRADES, trades[r], TRADES, seed, scratch);
    }
    ab_correct(p, REVISIONS - 1, scratch);
    for (int r = 0; r < REVISIONS - 1; r++)
        if (p[r] < 0.05)
            return true;
    return false;
}

static int skills_that_seem_to_differ(double edge)
{
    int count = 0;
    chance_state = 11;
    for (int i = 0; i < SKILLS; i++)
        count += seems_to_differ(edge);
    return count;
}

START_TEST(without_an_effect_at_most_one_skill_in_twenty_shows_one)
{
    int shown = skills_that_seem_to_differ(0);
    printf("no effect: %d of %d skills show a corrected p below 0.05\n", shown, SKILLS);
    ck_assert_int_le(shown, SKILLS / 20);
    ck_assert_int_gt(shown, 0); /* a test that never speaks is of no use either */
}
END_TEST

START_TEST(a_planted_effect_is_found_and_the_power_is_told)
{
    int before = 0;
    for (int edge = 10; edge <= 30; edge += 10) {
        int found = skills_that_seem_to_differ(edge);
        printf("an edge of %d USD a trade (%.1f standard deviations), %d trades each: found in %d of %d "
               "skills\n",
               edge, edge / 20.4, TRADES, found, SKILLS);
        ck_assert_int_gt(found, before);
        before = found;
    }
    ck_assert_int_gt(before, SKILLS * 9 / 10);
}
END_TEST

/* The interval holds the true mean, 0, about 19 times in 20; with few skewed trades a little less often. */
START_TEST(the_interval_holds_the_truth)
{
    double values[100], scratch[100];
    int held = 0;
    chance_state = 5;
    for (int i = 0; i < 300; i++) {
        for (int n = 0; n < 100; n++)
            values[n] = trade(0);
        struct ab_summary s = ab_summarise(values, 100, ab_seed(values, 100, 0), scratch);
        held += s.low <= 0 && s.high >= 0;
    }
    printf("the interval held the true mean in %d of 300 groups\n", held);
    ck_assert_int_ge(held, 300 * 90 / 100);
    ck_assert_int_lt(held, 300);
}
END_TEST

UNIT_MAIN("ab", a_group_is_summarised, what_cannot_be_known_is_no_number,
          the_order_of_the_trades_changes_nothing_and_the_seed_is_all_the_chance,
          a_small_difference_has_its_exact_p, many_comparisons_are_corrected_by_holm,
          without_an_effect_at_most_one_skill_in_twenty_shows_one,
          a_planted_effect_is_found_and_the_power_is_told, the_interval_holds_the_truth)

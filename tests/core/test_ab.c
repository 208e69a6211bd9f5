/* Statistics of revisions: known results, and no false claims on trades that differ only by chance. */
#include <math.h>
#include <stdbool.h>

#include "core/ab/ab.h"
#include "core/ab/ab_draw.h"
#include "tests/core/unit.h"

enum { SKILLS = 1000, REVISIONS = 6, TRADES = 30 };

static uint64_t chance_state;

static double chance(void)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance_state >> 11) / 9007199254740992.0;
}

/* Realistic trades: many small losses, few large gains, a mean of zero. */
static double trade(double edge)
{
    double u = chance();
    return (u < 0.65 ? -10 - 10 * chance() : 20 + 15.72 * chance()) + edge;
}

START_TEST(a_group_is_summarised)
{
    const double values[] = { -5, -5, 0, 10, 10, 20 };
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

START_TEST(an_undefined_statistic_is_nan)
{
    const double gains[] = { 1, 2, 3 };
    double scratch[8];
    ck_assert(isnan(ab_summarise(gains, 3, 1, scratch).profit_factor));
    ck_assert(isnan(ab_summarise(gains, 0, 1, scratch).mean));
    ck_assert(isnan(ab_difference_p(gains, 0, gains, 3, 1, scratch)));
}
END_TEST

START_TEST(the_same_seed_gives_the_same_result)
{
    static double values[5000], scratch[5000];
    const size_t counts[] = { 50, 5000 }; /* one by one, and in blocks */
    for (int n = 0; n < 2; n++) {
        for (size_t i = 0; i < counts[n]; i++)
            values[i] = trade(0);
        ab_sort(values, counts[n], scratch);
        struct ab_summary a = ab_summarise(values, counts[n], 7, scratch),
                          b = ab_summarise(values, counts[n], 7, scratch);
        ck_assert_mem_eq(&a, &b, sizeof a);
        ck_assert_double_ne(a.low, ab_summarise(values, counts[n], 8, scratch).low);
    }
    ck_assert_uint_ne(ab_seed(values, 50, 0), ab_seed(values + 1, 50, 0));
}
END_TEST

/* A draw is always one of the values, whatever lies next to them in memory. */
START_TEST(draws_stay_within_the_values)
{
    double room[66];
    uint64_t seed = 9;
    for (size_t count = 1; count <= 64; count++)
        for (int times = 0; times < 200; times++) {
            double *values = room + 1, total = 0, rest, half = (double)(count / 2);
            for (size_t i = 0; i < 66; i++)
                room[i] = i == 0 || i > count ? NAN : 1;
            HOLDS(ab_draw_resample(values, count, &seed) == 1);
            const struct ab_draw d = { values, count, count / 2, 0.5 };
            HOLDS(ab_draw(&d, &seed) == half + 0.5);
            const size_t blocks = ab_draw_blocks(values, count, 3, &seed, &rest);
            for (size_t i = 0; i < blocks; i++)
                total += values[i];
            HOLDS(blocks == count / 3 && total == (double)(3 * blocks) && rest == (double)(count % 3));
            HOLDS(isnan(room[0]) && (count == 64 || isnan(room[count + 1])));
        }
}
END_TEST

/* Each of ten values is drawn equally often at each position. */
START_TEST(draws_are_uniform)
{
    enum { TIMES = 100000 };
    double values[10];
    int drawn[10] = { 0 };
    uint64_t seed = 10;
    for (int i = 0; i < 10; i++)
        values[i] = 1 << i;
    for (int times = 0; times < TIMES; times++) {
        const struct ab_draw d = { values, 10, 3, 0 };
        for (int i = 0, sum = (int)ab_draw(&d, &seed); i < 10; i++)
            drawn[i] += sum >> i & 1;
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_le(abs(drawn[i] - TIMES * 3 / 10), 700); /* the standard deviation is 145 */
}
END_TEST

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

START_TEST(any_numbers_are_sorted)
{
    double values[3000], wanted[3000], scratch[3000];
    for (int i = 0; i < 3000; i++)
        values[i] = i % 7 ? ldexp(chance() - 0.5, i % 200 - 100) : i % 2 ? -0.0 : i - 1500;
    memcpy(wanted, values, sizeof wanted);
    qsort(wanted, 3000, sizeof *wanted, ascending);
    ab_sort(values, 3000, scratch);
    for (int i = 0; i < 3000; i++) {
        HOLDS(values[i] == wanted[i]);
        HOLDS(values[i] != 0 || !signbit(values[i]));
    }
    ab_sort(values, 0, scratch);
}
END_TEST

/* Two groups of three without overlap: 2 of the 20 permutations are as extreme. */
START_TEST(a_small_difference_has_its_exact_p)
{
    const double a[] = { 1, 2, 3 }, b[] = { 10, 11, 12 };
    double scratch[6], p = ab_difference_p(a, 3, b, 3, 3, scratch);
    ck_assert_double_eq_tol(p, 0.1, 0.05);
    ck_assert_double_eq(p, ab_difference_p(b, 3, a, 3, 3, scratch));
    ck_assert_double_eq(ab_difference_p(a, 3, a, 3, 3, scratch), 1);
}
END_TEST

/* Sums of equal numbers differ by rounding errors, which must not count as a difference. */
START_TEST(rounding_errors_are_no_difference)
{
    enum { MOST = 20000 };
    static double a[MOST], b[MOST], scratch[2 * MOST];
    static const double values[] = { 0.1, -0.3, 1e9 / 3, -1e-7 / 3, 0 };
    static const size_t counts[][2] = {
        { 20, 20 }, { 100, 133 }, { 200, 300 }, { 20, MOST }, { MOST, 7001 }
    };
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
            for (int last_bits = 0; last_bits < 2; last_bits++) {
                for (size_t i = 0; i < MOST; i++) {
                    a[i] = values[v];
                    b[i] = last_bits && a[i] != 0 ? nextafter(values[v], i % 3 ? 1e300 : -1e300) : values[v];
                }
                ck_assert_double_eq(ab_difference_p(a, counts[n][0], b, counts[n][1], n, scratch), 1);
            }
}
END_TEST

/* The same percentage of each size, computed from the size. */
START_TEST(a_constant_ratio_stays_constant_after_division)
{
    double a[200], b[300], scratch[500];
    for (int i = 0; i < 200; i++)
        a[i] = -0.1 * (1 + 1e-16 * (i % 3));
    for (int i = 0; i < 300; i++)
        b[i] = 100 * (-0.001 * (1000 + i)) / (1000.0 + i);
    ck_assert_double_eq(ab_difference_p(a, 200, b, 300, 1, scratch), 1);
}
END_TEST

/* Long computations run in steps with the same result. */
START_TEST(intervals_and_p_values_are_computed_step_by_step)
{
    enum { COUNT = 900 };
    static double a[COUNT], b[COUNT], scratch[2 * COUNT];
    struct ab_difference d;
    struct ab_summing s;
    int of_difference = 1, of_summary = 1;
    chance_state = 13;
    for (int i = 0; i < COUNT; i++) {
        a[i] = trade(0);
        b[i] = trade(4);
    }
    ab_sort(a, COUNT, scratch);
    ab_difference_begin(&d, a, COUNT, b, COUNT, 3, scratch);
    while (!ab_difference_step(&d))
        of_difference++;
    ck_assert_int_gt(of_difference, 5);
    ck_assert_double_eq(d.p, ab_difference_p(a, COUNT, b, COUNT, 3, scratch));
    ab_summing_begin(&s, a, COUNT, 3, scratch);
    while (!ab_summing_step(&s))
        of_summary++;
    ck_assert_int_gt(of_summary, 3);
    const struct ab_summary whole = ab_summarise(a, COUNT, 3, scratch);
    ck_assert_mem_eq(&s.out, &whole, sizeof whole);
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

/* True if any revision of a skill seems to differ from the previous one. The last one has a real edge. */
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
    ck_assert_int_gt(shown, 0); /* a test that never finds anything is useless too */
}
END_TEST

START_TEST(a_planted_effect_is_found_and_the_power_is_printed)
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

/* The interval covers the true mean, 0, about 19 times in 20; with few skewed trades slightly less often. */
START_TEST(the_interval_covers_the_true_mean)
{
    double values[100], scratch[100];
    int held = 0;
    chance_state = 5;
    for (int i = 0; i < 300; i++) {
        for (int n = 0; n < 100; n++)
            values[n] = trade(0);
        ab_sort(values, 100, scratch);
        struct ab_summary s = ab_summarise(values, 100, ab_seed(values, 100, 0), scratch);
        held += s.low <= 0 && s.high >= 0;
    }
    printf("the interval held the true mean in %d of 300 groups\n", held);
    ck_assert_int_ge(held, 300 * 90 / 100);
    ck_assert_int_lt(held, 300);
}
END_TEST

UNIT_MAIN("ab", a_group_is_summarised, an_undefined_statistic_is_nan, the_same_seed_gives_the_same_result,
          any_numbers_are_sorted, draws_stay_within_the_values, draws_are_uniform,
          a_small_difference_has_its_exact_p, rounding_errors_are_no_difference,
          intervals_and_p_values_are_computed_step_by_step, a_constant_ratio_stays_constant_after_division,
          many_comparisons_are_corrected_by_holm, without_an_effect_at_most_one_skill_in_twenty_shows_one,
          a_planted_effect_is_found_and_the_power_is_printed, the_interval_covers_the_true_mean)

/* Reports on revisions of lessons: no false claims, the same result for the same trades, bounded size. */
#include "core/ab/ab_report.h"

#include <malloc.h>
#include <math.h>

#include "core/ab/ab_internal.h"
#include "tests/core/unit.h"

static uint64_t chance_state;

static double chance(void)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance_state >> 11) / 9007199254740992.0;
}

/* Realistic trades: many small losses, few large gains, a mean of zero, different sizes. */
static struct ab_trade random_trade(double edge)
{
    static const char *const regimes[] = { "chop_lowvol", "trend_up_hivol", NULL };
    static const char *const symbols[] = { "BTC", "ETH" };
    const double net = (chance() < 0.65 ? -10 - 10 * chance() : 20 + 15.72 * chance()) + edge;
    return (struct ab_trade){ .regime = regimes[(int)(chance() * 3)],
                              .symbol = symbols[(int)(chance() * 2)],
                              .values = { net, 100 * net / (100 + 400 * chance()) } };
}

static const char *hash_of(int revision)
{
    static const char *const hashes[] = { NULL, "1111111111111111", "2222222222222222", "3333333333333333" };
    return hashes[revision];
}

static void run(struct ab_report *r)
{
    while (!ab_report_step(r))
        ;
}

static void finish(struct ab_report *r)
{
    run(r);
    ab_report_compute(r);
    run(r);
}

/* ---- false positives ---- */

enum { SKILLS = 1000, REVISIONS = 4, TRADES = 60 };

/* The smallest corrected p-value of each metric in the report of a skill whose last revision has an edge. */
static void smallest(double edge, double least[AB_METRICS])
{
    struct ab_report *r = ab_report_open("skill", NULL);
    for (int i = 0; i < REVISIONS * TRADES; i++) {
        struct ab_trade t = random_trade(i / TRADES == REVISIONS - 1 ? edge : 0);
        t.lessons_hash = hash_of(i / TRADES);
        t.entry_us = i;
        ab_report_trade(r, &t);
    }
    finish(r);
    for (int m = 0; m < AB_METRICS; m++)
        least[m] = 1;
    for (int d = 0; d < AB_DIMENSIONS; d++)
        for (size_t i = 0; i < r->groups[d].count; i++)
            for (int m = 0; m < AB_METRICS; m++)
                least[m] = fmin(least[m], r->groups[d].items[i].of[m].corrected); /* fmin ignores NAN */
    ab_report_release(r);
}

/* The last count is of skills with an effect in either metric. */
static void count_skills(int skills, double edge, int found[AB_METRICS + 1])
{
    chance_state = 29;
    found[0] = found[1] = found[AB_METRICS] = 0;
    for (int i = 0; i < skills; i++) {
        double least[AB_METRICS];
        smallest(edge, least);
        for (int m = 0; m < AB_METRICS; m++)
            found[m] += least[m] < 0.05;
        found[AB_METRICS] += fmin(least[0], least[1]) < 0.05;
    }
}

START_TEST(without_an_effect_at_most_one_report_in_twenty_shows_one)
{
    int found[AB_METRICS + 1];
    count_skills(SKILLS, 0, found);
    printf("no effect: of %d skills, a corrected p below 0.05 in %d: in %d by net, in %d by return\n", SKILLS,
           found[AB_METRICS], found[0], found[1]);
    ck_assert_int_le(found[AB_METRICS], SKILLS / 20);
    for (int m = 0; m < AB_METRICS; m++)
        ck_assert_int_gt(found[m], 0); /* a test that never finds anything is useless too */
}
END_TEST

START_TEST(a_planted_effect_is_found_and_the_power_is_printed)
{
    int found[AB_METRICS + 1], before = 0;
    for (int edge = 10; edge <= 20; edge += 5) {
        count_skills(100, edge, found);
        printf("an edge of %d USD a trade (%.1f standard deviations), %d trades each: found in %d of 100 "
               "skills by "
               "net, in %d by return\n",
               edge, edge / 20.4, TRADES, found[0], found[1]);
        ck_assert_int_gt(found[0], before);
        before = found[0];
    }
    ck_assert_int_gt(before, 90);
}
END_TEST

/* How often two groups of the same trades seem to differ at 5 %. */
static int seem_to_differ(size_t a_count, size_t b_count, int tries)
{
    static double a[1000], b[1000], scratch[2000];
    int found = 0;
    for (int i = 0; i < tries; i++) {
        for (size_t n = 0; n < a_count; n++)
            a[n] = random_trade(0).values[0];
        for (size_t n = 0; n < b_count; n++)
            b[n] = random_trade(0).values[0];
        ab_sort(a, a_count, scratch);
        ab_sort(b, b_count, scratch);
        const uint64_t seed = ab_seed(a, a_count, ab_seed(b, b_count, 0));
        found += ab_difference_p(a, a_count, b, b_count, seed, scratch) <= 0.05;
    }
    return found;
}

START_TEST(large_groups_tested_in_blocks_keep_the_error_rate)
{
    static const size_t sizes[][2] = { { 150, 150 }, { 300, 1000 }, { 999, 130 } };
    chance_state = 31;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int found = seem_to_differ(sizes[i][0], sizes[i][1], 400);
        printf("%zu against %zu: %d of 400 pairs without an effect have p <= 0.05\n", sizes[i][0],
               sizes[i][1], found);
        ck_assert_int_le(found, 33); /* 20 are expected, with a standard deviation of 4.4 */
        ck_assert_int_ge(found, 7);
    }
}
END_TEST

/* A group of `ones` ones among `count`, and one with as many zeros: the exact probability that a draw is as
 * uneven, either way. */
static double exact_p(int ones, int count)
{
    double p = 0;
    for (int k = 0; k <= count; k++)
        if (abs(2 * k - count) >= abs(2 * ones - count))
            p += exp(2 * (lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1)) -
                     (lgamma(2 * count + 1) - 2 * lgamma(count + 1)));
    return p;
}

START_TEST(a_p_value_is_never_too_small_even_where_it_is_a_bound)
{
    enum { COUNT = 400 };
    double a[COUNT], b[COUNT], scratch[2 * COUNT];
    int bounds = 0;
    for (int ones = COUNT / 2; ones <= COUNT; ones += 4) {
        for (int i = 0; i < COUNT; i++) {
            a[i] = i < ones;
            b[i] = i >= ones;
        }
        const double p = ab_difference_p(a, COUNT, b, COUNT, (uint64_t)ones, scratch),
                     exact = exact_p(ones, COUNT);
        bounds += p < 1e-6;
        if (p < 1e-6)
            ck_assert_double_ge(p, exact);
        else
            ck_assert_double_ge(p, exact / 1.5 - 0.02); /* an estimate from a finite number of draws */
        ck_assert_double_gt(p, 0);
    }
    ck_assert_int_gt(bounds, 10);
}
END_TEST

START_TEST(the_interval_of_many_trades_covers_the_true_mean_and_is_no_wider_than_necessary)
{
    enum { COUNT = 3500, TIMES = 150 };
    static double values[COUNT], scratch[COUNT];
    int held = 0;
    double width = 0, wanted = 0;
    chance_state = 37;
    for (int i = 0; i < TIMES; i++) {
        double squares = 0;
        for (int n = 0; n < COUNT; n++) {
            values[n] = random_trade(0).values[0];
            squares += values[n] * values[n];
        }
        ab_sort(values, COUNT, scratch);
        const struct ab_summary s = ab_summarise(values, COUNT, ab_seed(values, COUNT, 0), scratch);
        held += s.low <= 0 && s.high >= 0;
        width += s.high - s.low;
        wanted += 2 * 1.96 * sqrt(squares) / COUNT;
    }
    printf(
        "of %d trades, the interval held the true mean in %d of %d groups; it is %.3f times as wide as the "
        "normal one\n",
        COUNT, held, TIMES, width / wanted);
    ck_assert_int_ge(held, TIMES * 90 / 100);
    ck_assert_int_lt(held, TIMES);
    ck_assert_double_eq_tol(width / wanted, 1, 0.05);
}
END_TEST

/* ---- reports ---- */

START_TEST(the_order_of_the_trades_makes_no_difference)
{
    enum { COUNT = 2500 };
    static struct ab_trade trades[COUNT];
    const char *texts[2];
    struct ab_report *reports[2];
    chance_state = 41;
    for (int i = 0; i < COUNT; i++) {
        trades[i] = random_trade(0);
        trades[i].lessons_hash = hash_of(i % 4);
        trades[i].entry_us = i * INT64_C(60000000);
    }
    for (int n = 0; n < 2; n++) {
        reports[n] = ab_report_open("skill", "2026-06-04T10:00:00Z");
        for (int i = 0; i < COUNT; i++)
            ab_report_trade(reports[n], &trades[n ? (i * 7 + 3) % COUNT : i]);
        ck_assert_uint_eq(ab_report_trades(reports[n]), COUNT);
        finish(reports[n]);
        texts[n] =
            arena_copy(&reports[n]->arena, ab_report_json(reports[n])->data, ab_report_json(reports[n])->len);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    for (int n = 0; n < 2; n++)
        ab_report_release(reports[n]);
}
END_TEST

START_TEST(a_missing_value_excludes_a_trade_from_that_metric_only)
{
    struct ab_report *r = ab_report_open("skill", NULL);
    chance_state = 43;
    for (int i = 0; i < 60; i++) {
        struct ab_trade t = random_trade(0);
        t.lessons_hash = hash_of(1 + i / 30);
        t.entry_us = i;
        t.values[AB_RETURN_PCT] = i % 30 < 15 ? NAN : 1;
        ab_report_trade(r, &t);
    }
    finish(r);
    const struct ab_group *second = &r->groups[AB_ALL].items[1];
    ck_assert_uint_eq(second->of[AB_NET_USD].count, 30);
    ck_assert_uint_eq(second->of[AB_RETURN_PCT].count, 15);
    ck_assert(!isnan(second->of[AB_NET_USD].p));
    ck_assert(isnan(second->of[AB_RETURN_PCT].p)); /* too few are left */
    ck_assert_ptr_nonnull(strstr(buf_string(&r->json), "\"return_pct\":null"));
    ab_report_release(r);
}
END_TEST

START_TEST(no_trades_give_an_empty_report)
{
    struct ab_report *r = ab_report_open("empty", NULL);
    finish(r);
    ck_assert_str_eq(buf_string(&r->json),
                     "{\"skill_id\":\"empty\",\"as_of\":null,\"min_trades\":20,\"trades\":0,"
                     "\"comparisons\":0,\"revisions_omitted\":0,\"revisions\":[]}");
    ab_report_release(r);
}
END_TEST

/* Every trade has its own hash and symbol: lookup works for any number of names. */
START_TEST(any_number_of_revisions_and_symbols_is_accepted)
{
    struct ab_report *r = ab_report_open("skill", NULL);
    char hash[17], symbol[17];
    for (int i = 0; i < 20000; i++) {
        snprintf(hash, sizeof hash, "%016x", (unsigned)(i % 5000));
        snprintf(symbol, sizeof symbol, "S%d", i / 3);
        const struct ab_trade t = {
            .lessons_hash = hash, .symbol = symbol, .values = { i, i }, .entry_us = i
        };
        ab_report_trade(r, &t);
    }
    finish(r);
    ck_assert_uint_eq(r->shown, AB_REVISIONS_MAX);
    ck_assert_uint_eq(r->omitted, 4800);
    ck_assert_uint_eq(r->kept, AB_REVISIONS_MAX * 4);
    ck_assert_str_eq(r->revisions[0].hash, "00000000000012c0");
    ab_report_release(r);
}
END_TEST

/* No single step processes all trades or all keys. */
START_TEST(a_large_report_is_computed_in_small_steps)
{
    enum { MANY = 50000 };
    struct ab_report *r = ab_report_open("skill", NULL);
    int steps[8] = { 0 };
    for (int i = 0; i < MANY; i++) {
        char symbol[17];
        snprintf(symbol, sizeof symbol, "S%d", i % 25000);
        struct ab_trade t = random_trade(i % 2 ? 0.4 : 0);
        t.lessons_hash = hash_of(1 + i % 2);
        t.symbol = symbol;
        t.entry_us = i;
        ab_report_trade(r, &t);
    }
    run(r);
    ab_report_compute(r);
    do
        steps[r->phase]++;
    while (!ab_report_step(r));
    static const int at_least[] = { 1, 12, 2 * 3 * 15, 2 * 2 * AB_SORT_PIECES, 2 * 2 * 5, 2 * 3, 1, 2 };
    for (int phase = 0; phase < 8; phase++)
        ck_assert_msg(steps[phase] >= at_least[phase], "phase %d: %d steps", phase, steps[phase]);
    ck_assert_uint_eq(r->revisions[0].omitted[AB_BY_SYMBOL], 25000 / 2 - AB_KEYS_MAX);
    ab_report_release(r);
}
END_TEST

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t bytes_in_use(void)
{
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* Agents choose hashes and symbols: even one per trade must fit in little memory, and growing the table must
 * not stall the loop. */
START_TEST(as_many_revisions_as_trades_take_little_memory)
{
    enum { MANY = 290000 };
    const size_t before = bytes_in_use();
    size_t last = before, most = 0;
    struct ab_report *r = ab_report_open("skill", NULL);
    for (int i = 0; i < MANY; i++) {
        char hash[17], symbol[17];
        snprintf(hash, sizeof hash, "%016x", (unsigned)i * 2654435761u);
        snprintf(symbol, sizeof symbol, "S%d", i);
        const struct ab_trade t = {
            .lessons_hash = hash, .symbol = symbol, .values = { i, i }, .entry_us = i * INT64_C(7919) % MANY
        };
        ab_report_trade(r, &t);
        const size_t now = bytes_in_use();
        most = now - last > most ? now - last : most;
        last = now;
    }
    finish(r);
    const size_t all = bytes_in_use() - before;
    printf("%d trades, each with its own hash and symbol: %zu bytes, %zu at once\n", MANY, all, most);
    ck_assert_uint_lt(all, 60000000);
    ck_assert_uint_lt(most, 1000000);
    ck_assert_uint_eq(r->omitted, MANY - AB_REVISIONS_MAX);
    for (int i = 0; i < AB_REVISIONS_MAX; i++)
        ck_assert_int_eq(r->revisions[i].first_us, MANY - AB_REVISIONS_MAX + i);
    ab_report_release(r);
}
END_TEST

UNIT_MAIN("ab_report", without_an_effect_at_most_one_report_in_twenty_shows_one,
          a_planted_effect_is_found_and_the_power_is_printed,
          large_groups_tested_in_blocks_keep_the_error_rate,
          a_p_value_is_never_too_small_even_where_it_is_a_bound,
          the_interval_of_many_trades_covers_the_true_mean_and_is_no_wider_than_necessary,
          the_order_of_the_trades_makes_no_difference, a_missing_value_excludes_a_trade_from_that_metric_only,
          no_trades_give_an_empty_report, any_number_of_revisions_and_symbols_is_accepted,
          a_large_report_is_computed_in_small_steps, as_many_revisions_as_trades_take_little_memory)

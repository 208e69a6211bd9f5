/* Rates: bursts, refill, and how long to wait. */
#include "core/base/rate.h"
#include "tests/core/unit.h"

#define S INT64_C(1000000000)

/* Takes `tries` events at `now`; returns how many were given. */
static int taken(struct rate r, int64_t *full, int64_t now, int tries)
{
    int given = 0;
    for (int i = 0; i < tries; i++) {
        int64_t wait;
        *full = rate_take(r, *full, now, &wait);
        given += wait == 0;
    }
    return given;
}

START_TEST(a_new_bucket_gives_its_burst_and_then_its_rate)
{
    const struct rate r = rate_of(5, S, 20);
    int64_t full = 0;
    ck_assert_int_eq(taken(r, &full, 1000 * S, 100), 20);
    ck_assert_int_eq(taken(r, &full, 1001 * S, 100), 5);
    ck_assert_int_eq(taken(r, &full, 1003 * S, 100), 10);
    ck_assert_int_eq(taken(r, &full, 1060 * S, 100), 20);
}
END_TEST

START_TEST(over_any_time_it_gives_at_most_burst_and_rate)
{
    const struct rate r = rate_of(7, S, 3);
    int64_t full = 0;
    int given = 0;
    for (int64_t ms = 0; ms < 60 * 1000; ms++)
        given += taken(r, &full, 5 * S + ms * (S / 1000), 2);
    ck_assert_int_ge(given, 7 * 60);
    ck_assert_int_le(given, 7 * 60 + 3);
}
END_TEST

START_TEST(the_wait_is_exact_and_a_refusal_costs_nothing)
{
    const struct rate r = rate_of(1, 60 * S, 1);
    int64_t full = 0, wait;
    full = rate_take(r, full, 10 * S, &wait);
    ck_assert_int_eq(wait, 0);
    for (int i = 0; i < 10; i++)
        full = rate_take(r, full, 20 * S, &wait);
    ck_assert_int_eq(wait, 50 * S);
    ck_assert_int_eq(rate_take(r, full, 20 * S + wait - 1, &wait), full);
    ck_assert_int_eq(wait, 1);
    ck_assert_int_gt(rate_take(r, full, 70 * S, &wait), full);
    ck_assert_int_eq(wait, 0);
}
END_TEST

START_TEST(waits_are_rounded_up_to_seconds)
{
    static const int64_t cases[][2] = { { 1, 1 }, { S - 1, 1 }, { S, 1 }, { S + 1, 2 }, { 59 * S + 5, 60 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(rate_seconds(cases[i][0]), cases[i][1]);
}
END_TEST

UNIT_MAIN("rate", a_new_bucket_gives_its_burst_and_then_its_rate,
          over_any_time_it_gives_at_most_burst_and_rate, the_wait_is_exact_and_a_refusal_costs_nothing,
          waits_are_rounded_up_to_seconds)

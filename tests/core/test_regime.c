/* The regime of a window of closes. */
#include <math.h>

#include "core/ledger/regime.h"
#include "tests/core/unit.h"

/* Closes that go from `from` to `to` in equal steps, every other one off by `swing` of itself; the ends are
 * not. */
static enum regime window(double from, double to, double swing, size_t count)
{
    double closes[200];
    for (size_t i = 0; i < count; i++) {
        closes[i] = from + (to - from) * (double)i / (double)(count - 1);
        if (i % 2 == 1 && i + 1 < count)
            closes[i] *= 1 + swing;
    }
    return regime_classify(closes, count, &regime_defaults);
}

START_TEST(each_bucket_has_its_window)
{
    ck_assert_int_eq(window(100, 102, 0, 100), REGIME_TREND_UP_LOWVOL);
    ck_assert_int_eq(window(100, 102, 0.01, 100), REGIME_TREND_UP_HIVOL);
    ck_assert_int_eq(window(100, 98, 0, 100), REGIME_TREND_DOWN_LOWVOL);
    ck_assert_int_eq(window(100, 98, 0.01, 100), REGIME_TREND_DOWN_HIVOL);
    ck_assert_int_eq(window(100, 100.2, 0, 100), REGIME_CHOP_LOWVOL);
    ck_assert_int_eq(window(100, 99.8, 0.01, 100), REGIME_CHOP_HIVOL);
}
END_TEST

START_TEST(the_tags_are_those_of_the_ledger)
{
    static const char *const tags[] = { "unknown",           "trend_up_lowvol",  "trend_up_hivol",
                                        "trend_down_lowvol", "trend_down_hivol", "chop_lowvol",
                                        "chop_hivol" };
    for (int i = 0; i < REGIMES; i++)
        ck_assert_str_eq(regime_names[i], tags[i]);
    ck_assert_ptr_null(regime_names[REGIMES]);
}
END_TEST

START_TEST(a_move_of_exactly_the_threshold_is_no_trend)
{
    static const double starts[] = { 1, 3, 7, 100, 200, 0.0000964, 65200, 1e-9, 123456789 };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        double s = starts[i];
        ck_assert_int_eq(window(s, s * 1.005, 0, 50), REGIME_CHOP_LOWVOL);
        ck_assert_int_eq(window(s, s * 0.995, 0, 50), REGIME_CHOP_LOWVOL);
        ck_assert_int_eq(window(s, s * 1.0050001, 0, 50), REGIME_TREND_UP_LOWVOL);
        ck_assert_int_eq(window(s, s * 0.9949999, 0, 50), REGIME_TREND_DOWN_LOWVOL);
    }
}
END_TEST

/* An even number of returns that are +r and -r in turn have mean zero and deviation r. */
static enum regime swinging(double r)
{
    double closes[13];
    for (int i = 0; i < 13; i++)
        closes[i] = i % 2 ? 100 * exp(r) : 100;
    return regime_classify(closes, 13, &regime_defaults);
}

START_TEST(a_deviation_of_exactly_the_threshold_is_high)
{
    ck_assert_int_eq(swinging(0.004), REGIME_CHOP_HIVOL);
    ck_assert_int_eq(swinging(0.0040001), REGIME_CHOP_HIVOL);
    ck_assert_int_eq(swinging(0.0039999), REGIME_CHOP_LOWVOL);
    ck_assert_int_eq(swinging(-0.004), REGIME_CHOP_HIVOL);
}
END_TEST

START_TEST(too_few_closes_are_unknown)
{
    ck_assert_int_eq(window(100, 105, 0, 11), REGIME_UNKNOWN);
    ck_assert_int_eq(window(100, 105, 0, 12), REGIME_TREND_UP_LOWVOL);
    ck_assert_int_eq(regime_classify(NULL, 0, &regime_defaults), REGIME_UNKNOWN);
    const struct regime_thresholds any = { .trend = 0.005, .vol = 0.004, .min_bars = 0 };
    ck_assert_int_eq(regime_classify((double[]){ 100 }, 1, &any), REGIME_UNKNOWN);
    ck_assert_int_eq(regime_classify((double[]){ 100, 101 }, 2, &any), REGIME_TREND_UP_LOWVOL);
}
END_TEST

START_TEST(one_invalid_close_makes_the_window_unknown)
{
    const double bad[] = { 0, -0.0, -1, NAN, INFINITY, -INFINITY };
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (size_t at = 0; at < 20; at++) {
            double closes[20];
            for (size_t i = 0; i < 20; i++)
                closes[i] = i == at ? bad[b] : 100;
            ck_assert_int_eq(regime_classify(closes, 20, &regime_defaults), REGIME_UNKNOWN);
        }
}
END_TEST

START_TEST(closes_too_far_apart_are_unknown)
{
    double closes[12] = { 1e-308, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1e308 };
    ck_assert_int_eq(regime_classify(closes, 12, &regime_defaults), REGIME_UNKNOWN);
    closes[0] = 1;
    ck_assert_int_eq(regime_classify(closes, 12, &regime_defaults), REGIME_TREND_UP_HIVOL);
    closes[5] = 5e-324;
    ck_assert_int_eq(regime_classify(closes, 12, &regime_defaults), REGIME_UNKNOWN);
}
END_TEST

START_TEST(given_thresholds_decide_and_bad_ones_are_unknown)
{
    double closes[12];
    for (int i = 0; i < 12; i++)
        closes[i] = 100 + i;
    const struct regime_thresholds wide = { .trend = 0.2, .vol = 0.1, .min_bars = 12 };
    const struct regime_thresholds none = { .trend = 0, .vol = 0, .min_bars = 2 };
    ck_assert_int_eq(regime_classify(closes, 12, &wide), REGIME_CHOP_LOWVOL);
    ck_assert_int_eq(regime_classify(closes, 12, &none), REGIME_TREND_UP_HIVOL);
    const double bad[] = { NAN, INFINITY, -0.1 };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(regime_classify(closes, 12, &(struct regime_thresholds){ bad[i], 0.1, 2 }),
                         REGIME_UNKNOWN);
        ck_assert_int_eq(regime_classify(closes, 12, &(struct regime_thresholds){ 0.1, bad[i], 2 }),
                         REGIME_UNKNOWN);
    }
}
END_TEST

UNIT_MAIN("regime", each_bucket_has_its_window, the_tags_are_those_of_the_ledger,
          a_move_of_exactly_the_threshold_is_no_trend, a_deviation_of_exactly_the_threshold_is_high,
          too_few_closes_are_unknown, one_invalid_close_makes_the_window_unknown,
          closes_too_far_apart_are_unknown, given_thresholds_decide_and_bad_ones_are_unknown)

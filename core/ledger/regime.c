/* The market a trade was entered in: one of six buckets by trend and volatility of a window of closes. */
#include "core/ledger/regime.h"

#include <math.h>
#include <stdbool.h>

const char *const regime_names[REGIMES + 1] = {
    [REGIME_UNKNOWN] = "unknown",
    [REGIME_TREND_UP_LOWVOL] = "trend_up_lowvol",
    [REGIME_TREND_UP_HIVOL] = "trend_up_hivol",
    [REGIME_TREND_DOWN_LOWVOL] = "trend_down_lowvol",
    [REGIME_TREND_DOWN_HIVOL] = "trend_down_hivol",
    [REGIME_CHOP_LOWVOL] = "chop_lowvol",
    [REGIME_CHOP_HIVOL] = "chop_hivol",
};

const struct regime_thresholds regime_defaults = { .trend = REGIME_DEFAULT_TREND,
                                                   .vol = REGIME_DEFAULT_VOL,
                                                   .min_bars = REGIME_DEFAULT_MIN_BARS };

enum trend { UP, DOWN, CHOP };

static const enum regime buckets[][2] = {
    [UP] = { REGIME_TREND_UP_LOWVOL, REGIME_TREND_UP_HIVOL },
    [DOWN] = { REGIME_TREND_DOWN_LOWVOL, REGIME_TREND_DOWN_HIVOL },
    [CHOP] = { REGIME_CHOP_LOWVOL, REGIME_CHOP_HIVOL },
};

static const double at_threshold = 1e-12;

static bool usable(const double *closes, size_t count, const struct regime_thresholds *t)
{
    if (!isfinite(t->trend) || !isfinite(t->vol) || t->trend < 0 || t->vol < 0)
        return false;
    if (count < 2 || count < t->min_bars)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(closes[i]) || closes[i] <= 0)
            return false;
    return true;
}

/* Log returns add up to the log of the whole move, so their mean needs no pass of its own. */
static double deviation(const double *closes, size_t count)
{
    double returns = (double)(count - 1);
    double mean = log(closes[count - 1] / closes[0]) / returns, squares = 0;
    for (size_t i = 1; i < count; i++) {
        double apart = log(closes[i] / closes[i - 1]) - mean;
        squares += apart * apart;
    }
    return sqrt(squares / returns);
}

enum regime regime_classify(const double *closes, size_t count, const struct regime_thresholds *t)
{
    if (!usable(closes, count, t))
        return REGIME_UNKNOWN;
    double move = closes[count - 1] / closes[0] - 1, vol = deviation(closes, count);
    if (!isfinite(move) || !isfinite(vol))
        return REGIME_UNKNOWN;
    enum trend trend = move > t->trend + at_threshold ? UP : move < -t->trend - at_threshold ? DOWN : CHOP;
    return buckets[trend][vol >= t->vol - at_threshold];
}

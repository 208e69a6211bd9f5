/* The market a trade was entered in: one of six buckets by trend and volatility of a window of closes. */
#ifndef DAYBOOK_CORE_LEDGER_REGIME_H
#define DAYBOOK_CORE_LEDGER_REGIME_H

#include <stddef.h>

enum regime {
    REGIME_UNKNOWN,
    REGIME_TREND_UP_LOWVOL,
    REGIME_TREND_UP_HIVOL,
    REGIME_TREND_DOWN_LOWVOL,
    REGIME_TREND_DOWN_HIVOL,
    REGIME_CHOP_LOWVOL,
    REGIME_CHOP_HIVOL,
    REGIMES,
};

/* The tags in the order of the enum, NULL-terminated. */
extern const char *const regime_names[REGIMES + 1];

struct regime_thresholds {
    double trend;    /* a move from first to last close beyond +trend or -trend is a trend */
    double vol;      /* a standard deviation of the log returns of at least vol is high */
    size_t min_bars; /* fewer closes are unknown; two are always needed */
};

/* The defaults, tuned for a hundred bars of five minutes. Plain numbers, so that they can be texts too. */
#define REGIME_DEFAULT_TREND    0.005
#define REGIME_DEFAULT_VOL      0.004
#define REGIME_DEFAULT_MIN_BARS 12
extern const struct regime_thresholds regime_defaults;

/* Closes come oldest first. The deviation is that of the population (divided by the number of returns). A
 * value within 1e-12 of a threshold counts as equal to it: a move of exactly 0.5 % is chop and a deviation of
 * exactly 0.4 % is high, whatever the binary rounding of the closes. The result is REGIME_UNKNOWN if there
 * are too few closes, if a close is not finite or not above zero, if a threshold is not finite or negative,
 * or if closes are so far apart that a return is not finite. */
enum regime regime_classify(const double *closes, size_t count, const struct regime_thresholds *thresholds);

#endif

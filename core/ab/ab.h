/* Statistics of groups of trades: summaries with confidence intervals, and the significance of differences.
 */
#ifndef DAYBOOK_CORE_AB_AB_H
#define DAYBOOK_CORE_AB_AB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ab/ab_draw.h"

enum {
    AB_TRADES_MIN = 20,      /* of a group; smaller groups have no statistics */
    AB_RESAMPLES = 1000,     /* of a confidence interval */
    AB_PERMUTATIONS = 20000, /* at most, for a small p-value; others are certain earlier */
};

/* NAN: not defined. */
struct ab_summary {
    size_t count;
    double mean, median, win_rate;
    double profit_factor; /* gains of the winners divided by losses of the losers */
    double low, high;     /* of the mean, 95 % by bootstrap */
};

/* Sorts the values; -0 becomes 0. `scratch` has room for `count` numbers. */
void ab_sort(double *values, size_t count, double *scratch);

/* The same in pieces: call it once for each piece, from 0 on. */
enum { AB_SORT_PIECES = 10 };
void ab_sort_piece(double *values, size_t count, double *scratch, int piece);

/* Summarises sorted values. `scratch` has room for `count` numbers. The same values and seed give the same
 * summary. The interval of many values is computed from sums of random blocks, so its cost does not grow
 * with their number. */
struct ab_summary ab_summarise(const double *sorted, size_t count, uint64_t seed, double *scratch);

/* The same in steps. True: it was the last step, and `out` is complete. */
struct ab_summing {
    struct ab_summary out;
    const double *sorted;
    double *scratch, means[AB_RESAMPLES], off;
    size_t count, block;
    uint64_t seed;
    int drawn;
};
void ab_summing_begin(struct ab_summing *s, const double *sorted, size_t count, uint64_t seed,
                      double *scratch);
bool ab_summing_step(struct ab_summing *s);

/* The two-sided p-value of the difference of the means, by a permutation test: the probability of a
 * difference at least this large if both groups come from the same distribution. It is never too small. Large
 * groups are permuted in blocks, which is also exact. If a bound that holds for any values is below one in a
 * million, that bound is returned. `scratch` has room for both groups together. */
double ab_difference_p(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed,
                       double *scratch);

/* The same in steps; only the first step reads the groups. True: it was the last step, and `p` is set. */
struct ab_difference {
    double p, share, as_large;
    struct ab_draw draw;
    double *values; /* of both groups; NULL: `p` is final already */
    size_t a_count, b_count;
    uint64_t seed;
    int reached, tried;
};
void ab_difference_begin(struct ab_difference *d, const double *a, size_t a_count, const double *b,
                         size_t b_count, uint64_t seed, double *scratch);
bool ab_difference_step(struct ab_difference *d);

/* Corrects p-values for multiple comparisons by Holm's method, in place: without any true difference, the
 * smallest is below 0.05 at most one time in twenty. NAN is left alone and does not count. `scratch` has
 * room for twice `count` numbers. */
void ab_correct(double *p, size_t count, double *scratch);

/* A seed that depends only on the values. */
uint64_t ab_seed(const double *values, size_t count, uint64_t other);

#endif

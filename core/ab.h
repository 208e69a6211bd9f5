/* Whether the trades made under one text of lessons came out better than those under another, and how sure
 * that is. */
#ifndef DAYBOOK_CORE_AB_H
#define DAYBOOK_CORE_AB_H

#include <stddef.h>
#include <stdint.h>

enum {
    AB_TRADES_MIN = 20,      /* of a group, below which no number is given */
    AB_RESAMPLES = 1000,     /* of a confidence interval */
    AB_PERMUTATIONS = 20000, /* of a p-value that stays small; others are sure earlier */
};

/* NAN where there is no such number. */
struct ab_summary {
    size_t count;
    double mean, median, win_rate;
    double profit_factor; /* what the winners gained by what the losers lost */
    double low, high;     /* of the mean, 95 % by bootstrap */
};

/* `scratch` has room for `count` numbers. The same values and seed give the same summary. */
struct ab_summary ab_summarise(const double *values, size_t count, uint64_t seed, double *scratch);

/* How probable a difference of the means as large as this one is, either way, if both groups are drawn from
 * the same trades: by permutation, exact in that it is never too small. `scratch` has room for both groups
 * together. */
double ab_difference_p(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed,
                       double *scratch);

/* Corrects p-values for their number, by Holm's method, in place: with no true difference anywhere, the
 * smallest of them is below 0.05 at most one time in twenty. NAN stays, and does not count. `scratch` has
 * room for twice `count` numbers. */
void ab_correct(double *p, size_t count, double *scratch);

/* The seed for a group of values: of what they are, not of when or where. */
uint64_t ab_seed(const double *values, size_t count, uint64_t other);

#endif

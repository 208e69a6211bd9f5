/* Statistics of groups of trades: bootstrap intervals, permutation tests, correction for many comparisons. */
#include "core/ab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

enum { SURE = 50 }; /* permutations that reached the difference: the p-value is known well enough */

/* ---- chance ---- */

/* SplitMix64: one addition and a mixing of the bits; passes the usual tests, and is the same everywhere. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 .. below - 1. The product's upper half: with counts far below 2^64 its bias is nothing. */
static size_t pick(uint64_t *state, size_t below)
{
    return (size_t)((unsigned __int128)next(state) * below >> 64);
}

uint64_t ab_seed(const double *values, size_t count, uint64_t other)
{
    return hash_bytes(values, count * sizeof *values, other);
}

/* ---- one group ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sum(const double *values, size_t count)
{
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += values[i];
    return total;
}

static double median(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Percentiles of the means of samples drawn with replacement. */
static void bootstrap(const double *values, size_t count, uint64_t seed, struct ab_summary *out)
{
    double means[AB_RESAMPLES];
    for (int i = 0; i < AB_RESAMPLES; i++) {
        double total = 0;
        for (size_t n = 0; n < count; n++)
            total += values[pick(&seed, count)];
        means[i] = total / (double)count;
    }
    qsort(means, AB_RESAMPLES, sizeof *means, by_value);
    out->low = means[AB_RESAMPLES / 40];
    out->high = means[AB_RESAMPLES - 1 - AB_RESAMPLES / 40];
}

struct ab_summary ab_summarise(const double *values, size_t count, uint64_t seed, double *scratch)
{
    struct ab_summary out = { count, NAN, NAN, NAN, NAN, NAN, NAN };
    if (count == 0)
        return out;
    memcpy(scratch, values, count * sizeof *scratch);
    qsort(scratch, count, sizeof *scratch, by_value);
    size_t wins = 0;
    double gained = 0, lost = 0;
    for (size_t i = 0; i < count; i++) {
        wins += values[i] > 0;
        gained += values[i] > 0 ? values[i] : 0;
        lost -= values[i] < 0 ? values[i] : 0;
    }
    out.mean = sum(values, count) / (double)count;
    out.median = median(scratch, count);
    out.win_rate = (double)wins / (double)count;
    out.profit_factor = lost > 0 ? gained / lost : NAN;
    bootstrap(scratch, count, seed, &out); /* sorted: the order in which they came makes no difference */
    return out;
}

/* ---- two groups ---- */

double ab_difference_p(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed,
                       double *scratch)
{
    if (a_count == 0 || b_count == 0)
        return NAN;
    if (a_count > b_count) /* it is the smaller group that is drawn, which is less to draw */
        return ab_difference_p(b, b_count, a, a_count, seed, scratch);
    const size_t all = a_count + b_count;
    memcpy(scratch, a, a_count * sizeof *a);
    memcpy(scratch + a_count, b, b_count * sizeof *b);
    /* With all sums given, the difference of the means is as large as the smaller group's sum is far from its
     * share. */
    const double share = sum(scratch, all) * (double)a_count / (double)all;
    const double seen = fabs(sum(a, a_count) - share);
    const double as_large =
        seen - 1e-12 * (seen + fabs(share)); /* equal but for the order of the additions */
    int reached = 0, tried = 0;
    while (tried < AB_PERMUTATIONS && reached < SURE) {
        double drawn = 0;
        for (size_t i = 0; i < a_count; i++) {
            size_t other = i + pick(&seed, all - i);
            double value = scratch[other];
            scratch[other] = scratch[i];
            scratch[i] = value;
            drawn += value;
        }
        tried++;
        reached += fabs(drawn - share) >= as_large;
    }
    /* Stopped early, the share of those that reached it is an honest p-value; else the one seen counts as one
     * of them. */
    return reached == SURE ? (double)reached / tried : (double)(reached + 1) / (tried + 1);
}

/* The place of the first that is not below `value`. */
static size_t place(const double *sorted, size_t count, double value)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

void ab_correct(double *p, size_t count, double *scratch)
{
    double *sorted = scratch, *corrected = scratch + count;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            sorted[known++] = p[i];
    qsort(sorted, known, sizeof *sorted, by_value);
    double least = 0; /* a larger one is never corrected to less than a smaller one */
    for (size_t i = 0; i < known; i++) {
        least = fmax(least, fmin(1, sorted[i] * (double)(known - i)));
        corrected[i] = least;
    }
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            p[i] = corrected[place(sorted, known, p[i])];
}

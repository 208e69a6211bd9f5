/* Statistics of groups of trades: bootstrap intervals, permutation tests, correction for many comparisons. */
#include "core/ab/ab.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ab/ab_draw.h"
#include "core/base/hash.h"

enum {
    SURE = 50, /* permutations that reached the difference; then the p-value is accurate enough */
    /* Larger groups are divided into this many blocks, up to twice as many. The interval of 1,000 resamples
     * is itself accurate to only 4 % of its width; 1,000 blocks add 2 %. A test of 64 blocks against 64 is as
     * sensitive as one of single trades to an effect that is 3 % larger. */
    BLOCKS_OF_SUMMARY = 1000,
    BLOCKS_OF_DIFFERENCE = 64,
    DRAWS = 200000, /* of single values per step: about a millisecond */
};
static const double NO_CHANCE = 1e-6; /* a bound below this is used as the p-value */

uint64_t ab_seed(const double *values, size_t count, uint64_t other)
{
    return hash_bytes(values, count * sizeof *values, other);
}

/* ---- order ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Maps a double to an integer with the same order, and back. */
static uint64_t to_key(double value)
{
    uint64_t bits;
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double from_key(uint64_t key)
{
    uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void sort_by_byte(const uint64_t *from, uint64_t *to, size_t count, int shift)
{
    size_t places[256] = { 0 }, at = 0;
    for (size_t i = 0; i < count; i++)
        places[from[i] >> shift & 255]++;
    for (int byte = 0; byte < 256; byte++) {
        size_t here = places[byte];
        places[byte] = at;
        at += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i] >> shift & 255]++] = from[i];
}

/* A radix sort, lowest byte first: a hundred thousand values take one to two milliseconds, qsort takes ten.
 */
void ab_sort_piece(double *values, size_t count, double *scratch, int piece)
{
    _Static_assert(sizeof(double) == sizeof(uint64_t), "a key takes the place of a value");
    uint64_t *keys = (uint64_t *)(void *)values, *others = (uint64_t *)(void *)scratch;
    if (piece == 0)
        for (size_t i = 0; i < count; i++)
            keys[i] = to_key(values[i]);
    else if (piece == AB_SORT_PIECES - 1)
        for (size_t i = 0; i < count; i++)
            values[i] = from_key(keys[i]);
    else
        sort_by_byte(piece % 2 ? keys : others, piece % 2 ? others : keys, count, 8 * (piece - 1));
}

void ab_sort(double *values, size_t count, double *scratch)
{
    for (int piece = 0; piece < AB_SORT_PIECES; piece++)
        ab_sort_piece(values, count, scratch, piece);
}

/* ---- one group ---- */

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

static void set_moments(struct ab_summary *out, const double *sorted, size_t count)
{
    size_t wins = 0;
    double gained = 0, lost = 0;
    for (size_t i = 0; i < count; i++) {
        wins += sorted[i] > 0;
        gained += sorted[i] > 0 ? sorted[i] : 0;
        lost -= sorted[i] < 0 ? sorted[i] : 0;
    }
    out->mean = sum(sorted, count) / (double)count;
    out->median = median(sorted, count);
    out->win_rate = (double)wins / (double)count;
    out->profit_factor = lost > 0 ? gained / lost : NAN;
}

void ab_summing_begin(struct ab_summing *s, const double *sorted, size_t count, uint64_t seed,
                      double *scratch)
{
    s->out = (struct ab_summary){ count, NAN, NAN, NAN, NAN, NAN, NAN };
    s->sorted = sorted;
    s->scratch = scratch;
    s->count = count;
    s->block = count / BLOCKS_OF_SUMMARY > 1 ? count / BLOCKS_OF_SUMMARY : 1;
    s->seed = seed;
    s->drawn = 0;
    if (count)
        set_moments(&s->out, sorted, count);
}

/* Leaving out the remainder changes the mean of the blocks, but not the spread around it. */
static void put_in_blocks(struct ab_summing *s)
{
    double rest;
    memcpy(s->scratch, s->sorted, s->count * sizeof *s->scratch);
    if (s->block > 1)
        s->count = ab_draw_blocks(s->scratch, s->count, s->block, &s->seed, &rest);
    s->off = s->block > 1 ? s->out.mean - sum(s->scratch, s->count) / (double)(s->count * s->block) : 0;
}

/* The interval: percentiles of the means of samples. */
bool ab_summing_step(struct ab_summing *s)
{
    double other[AB_RESAMPLES];
    if (!s->count)
        return true;
    if (!s->drawn)
        put_in_blocks(s);
    for (size_t draws = 0; draws < DRAWS && s->drawn < AB_RESAMPLES; draws += s->count)
        s->means[s->drawn++] = ab_draw_resample(s->scratch, s->count, &s->seed) / (double)s->block + s->off;
    if (s->drawn < AB_RESAMPLES)
        return false;
    ab_sort(s->means, AB_RESAMPLES, other);
    s->out.low = s->means[AB_RESAMPLES / 40];
    s->out.high = s->means[AB_RESAMPLES - 1 - AB_RESAMPLES / 40];
    return true;
}

struct ab_summary ab_summarise(const double *sorted, size_t count, uint64_t seed, double *scratch)
{
    struct ab_summing s;
    ab_summing_begin(&s, sorted, count, seed, scratch);
    while (!ab_summing_step(&s))
        ;
    return s.out;
}

/* ---- two groups ---- */

/* Bernstein's inequality, which also holds for draws without replacement: an upper bound on the probability
 * that the sum of `drawn` values is this far from its expectation. */
static double bound(const double *values, size_t count, size_t drawn, double far)
{
    const double mean = sum(values, count) / (double)count;
    double squares = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs(values[i] - mean);
        squares += off * off;
        most = fmax(most, off);
    }
    const double spread = (double)drawn * squares / (double)count;
    return far > 0 ? 2 * exp(-far * far / (2 * (spread + most * far / 3))) : 1;
}

/* Divides large groups into blocks of one size. Every permutation of whole blocks, with the rest left in
 * place, is also a permutation of single values, so the test stays exact. */
static struct ab_draw in_blocks(double *values, size_t a_count, size_t b_count, uint64_t *seed)
{
    const size_t size = a_count / BLOCKS_OF_DIFFERENCE;
    struct ab_draw d = { values, a_count + b_count, a_count, 0 };
    if (size < 2)
        return d;
    double rest;
    d.drawn = ab_draw_blocks(values, a_count, size, seed, &d.fixed);
    size_t others = ab_draw_blocks(values + a_count, b_count, size, seed, &rest);
    memmove(values + d.drawn, values + a_count, others * sizeof *values);
    d.count = d.drawn + others;
    return d;
}

static double absolute(const double *values, size_t count)
{
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += fabs(values[i]);
    return total;
}

/* The rounding error of two sums and their difference, relative to the sum of absolute values. If all values
 * are equal, the difference is nothing but this error. */
static double rounding(size_t count)
{
    return 1e-12 + 2 * DBL_EPSILON * (double)count;
}

void ab_difference_begin(struct ab_difference *d, const double *a, size_t a_count, const double *b,
                         size_t b_count, uint64_t seed, double *scratch)
{
    if (a_count > b_count) { /* draw the smaller group: that is less work */
        ab_difference_begin(d, b, b_count, a, a_count, seed, scratch);
        return;
    }
    *d = (struct ab_difference){ .p = NAN, .seed = seed };
    if (a_count == 0)
        return;
    const size_t all = a_count + b_count;
    memcpy(scratch, a, a_count * sizeof *a);
    memcpy(scratch + a_count, b, b_count * sizeof *b);
    /* The total is fixed, so the difference of the means grows with the distance of the smaller group's sum
     * from its share. */
    d->share = sum(scratch, all) * (double)a_count / (double)all;
    const double seen = fabs(sum(a, a_count) - d->share);
    d->as_large = seen - rounding(all) * absolute(scratch, all);
    d->p = bound(scratch, all, a_count, d->as_large);
    d->values = d->p < NO_CHANCE ? NULL : scratch;
    d->a_count = a_count;
    d->b_count = b_count;
}

bool ab_difference_step(struct ab_difference *d)
{
    if (!d->values)
        return true;
    if (!d->tried)
        d->draw = in_blocks(d->values, d->a_count, d->b_count, &d->seed);
    for (size_t draws = 0; draws < DRAWS && d->tried < AB_PERMUTATIONS && d->reached < SURE;
         draws += d->draw.drawn) {
        d->tried++;
        d->reached += fabs(ab_draw(&d->draw, &d->seed) - d->share) >= d->as_large;
    }
    if (d->tried < AB_PERMUTATIONS && d->reached < SURE)
        return false;
    /* Stopped early, the share of permutations that reached the difference is an unbiased p-value; otherwise
     * the observed one counts too. */
    d->p = d->reached == SURE ? (double)d->reached / d->tried : (double)(d->reached + 1) / (d->tried + 1);
    return true;
}

double ab_difference_p(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed,
                       double *scratch)
{
    struct ab_difference d;
    ab_difference_begin(&d, a, a_count, b, b_count, seed, scratch);
    while (!ab_difference_step(&d))
        ;
    return d.p;
}

/* The index of the first value that is not below `value`. */
static size_t lower_bound(const double *sorted, size_t count, double value)
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
    double least = 0; /* keeps the order: a larger p-value stays larger */
    for (size_t i = 0; i < known; i++) {
        least = fmax(least, fmin(1, sorted[i] * (double)(known - i)));
        corrected[i] = least;
    }
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            p[i] = corrected[lower_bound(sorted, known, p[i])];
}

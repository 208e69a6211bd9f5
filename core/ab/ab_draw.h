/* Random draws for bootstrap intervals and permutation tests. */
#ifndef DAYBOOK_CORE_AB_AB_DRAW_H
#define DAYBOOK_CORE_AB_AB_DRAW_H

#include <stddef.h>
#include <stdint.h>

/* The mean of `count` values drawn with replacement. */
double ab_draw_resample(const double *values, size_t count, uint64_t *seed);

/* A permutation test draws `drawn` of the `count` values; `fixed` is added to each sum. */
struct ab_draw {
    double *values;
    size_t count, drawn;
    double fixed;
};

/* Draws the group without replacement and returns its sum. */
double ab_draw(const struct ab_draw *d, uint64_t *seed);

/* Replaces the values by sums of random blocks of `size` values and returns how many there are. The sum of
 * an incomplete block goes to *rest. */
size_t ab_draw_blocks(double *values, size_t count, size_t size, uint64_t *seed, double *rest);

#endif

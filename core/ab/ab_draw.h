/* Drawing by chance, millions of times: the arithmetic under intervals and p-values. */
#ifndef DAYBOOK_CORE_AB_AB_DRAW_H
#define DAYBOOK_CORE_AB_AB_DRAW_H

#include <stddef.h>
#include <stdint.h>

/* The mean of as many values, drawn with replacement. */
double ab_draw_resample(const double *values, size_t count, uint64_t *seed);

/* Values of which the first `drawn` are one group, to be drawn anew; `fixed` is always added to their sum. */
struct ab_draw {
    double *values;
    size_t count, drawn;
    double fixed;
};

/* Draws that group, without replacement, and gives its sum. */
double ab_draw(const struct ab_draw *d, uint64_t *seed);

/* Sums of `size` values each, thrown together by chance; gives how many. What fills none is summed up in
 * *rest.
 */
size_t ab_draw_blocks(double *values, size_t count, size_t size, uint64_t *seed, double *rest);

#endif

/* Random draws for bootstrap intervals and permutation tests. */
#include "core/ab/ab_draw.h"

/* One number of 64 bits draws two values. */

/* SplitMix64: fast, passes the usual statistical tests, and gives the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 .. below - 1: the upper half of the product. The bias is negligible for counts far below 2^64. */
static size_t pick(uint64_t *state, size_t below)
{
    return (size_t)((unsigned __int128)next_random(state) * below >> 64);
}

/* The same with half as many bits, for counts far below 2^32. */
static size_t pick_half(uint64_t chance, size_t below)
{
    return (size_t)(chance * below >> 32);
}

size_t ab_draw_blocks(double *values, size_t count, size_t size, uint64_t *seed, double *rest)
{
    const size_t blocks = count / size;
    for (size_t i = 0; i + 1 < count; i++) {
        size_t other = i + pick(seed, count - i);
        double value = values[other];
        values[other] = values[i];
        values[i] = value;
    }
    for (size_t block = 0; block < blocks; block++) {
        double total = 0;
        for (size_t i = block * size; i < (block + 1) * size; i++)
            total += values[i];
        values[block] = total;
    }
    *rest = 0;
    for (size_t i = blocks * size; i < count; i++)
        *rest += values[i];
    return blocks;
}

double ab_draw_resample(const double *values, size_t count, uint64_t *seed)
{
    double total = 0;
    for (size_t n = 0; n < count; n += 2) {
        const uint64_t chance = next_random(seed);
        total += values[pick_half(chance >> 32, count)];
        if (n + 1 < count)
            total += values[pick_half(chance & UINT32_MAX, count)];
    }
    return total / (double)count;
}

/* Swaps a random value from `i` on into position `i`. */
static double take(const struct ab_draw *d, size_t i, uint64_t chance)
{
    const size_t other = i + pick_half(chance, d->count - i);
    const double value = d->values[other];
    d->values[other] = d->values[i];
    d->values[i] = value;
    return value;
}

double ab_draw(const struct ab_draw *d, uint64_t *seed)
{
    double total = d->fixed;
    for (size_t i = 0; i < d->drawn; i += 2) {
        const uint64_t chance = next_random(seed);
        total += take(d, i, chance >> 32);
        if (i + 1 < d->drawn)
            total += take(d, i + 1, chance & UINT32_MAX);
    }
    return total;
}

/* The arithmetic of the encoder, once for any processor and once for those with AVX2 and FMA. */
#ifndef DAYBOOK_CORE_EMBED_EMBED_KERNELS_H
#define DAYBOOK_CORE_EMBED_EMBED_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* A matrix of int8 in panels of 16 outputs (core/embed/embed_file.h), a scale and a bias for each output. */
struct embed_dense {
    const int8_t *panels;
    const float *scales, *bias;
    size_t inputs, outputs;
};

enum embed_then { EMBED_SET, EMBED_ADD, EMBED_RELU };

struct embed_kernels {
    /* y = x W + bias for each row; or added to y; or with what is below zero made zero. */
    void (*dense)(const struct embed_dense *d, const float *x, size_t rows, float *y, enum embed_then then);
    /* Each row to mean 0 and variance 1, then scaled and shifted. */
    void (*norm)(const float *x, size_t rows, size_t width, const float *scale, const float *bias, float *y);
    /* Attention of every row to every row; a row of qkv holds query, key and value, each `width` wide.
     * `shares` has room for a number a row. */
    void (*attend)(const float *qkv, size_t rows, size_t width, float *shares, float *y);
};

extern const struct embed_kernels embed_kernels_any;
#if defined __x86_64__
extern const struct embed_kernels embed_kernels_avx2;
#endif

/* The fastest that this processor can run. */
const struct embed_kernels *embed_kernels_best(void);

#endif

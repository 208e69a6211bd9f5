/* The arithmetic of the encoder: a portable version, and one for AVX2 and FMA. */
#ifndef DAYBOOK_CORE_EMBED_EMBED_KERNELS_H
#define DAYBOOK_CORE_EMBED_EMBED_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* An int8 matrix in panels of 16 outputs (core/embed/embed_file.h), with a scale and a bias per output. */
struct embed_dense {
    const int8_t *panels;
    const float *scales, *bias;
    size_t inputs, outputs;
};

enum embed_then { EMBED_SET, EMBED_ADD, EMBED_RELU };

struct embed_kernels {
    /* For each row: y = x W + bias; EMBED_ADD: y += x W + bias; EMBED_RELU: y = max(0, x W + bias). */
    void (*dense)(const struct embed_dense *d, const float *x, size_t rows, float *y, enum embed_then then);
    /* Layer norm: brings each row to mean 0 and variance 1, then scales and shifts it. */
    void (*norm)(const float *x, size_t rows, size_t width, const float *scale, const float *bias, float *y);
    /* Self-attention over all rows. A row of qkv is query, key and value, each `width` wide. `shares` is
     * scratch memory for one float per row. */
    void (*attend)(const float *qkv, size_t rows, size_t width, float *shares, float *y);
};

extern const struct embed_kernels embed_kernels_any;
#if defined __x86_64__
extern const struct embed_kernels embed_kernels_avx2;
#endif

/* The fastest version that this processor supports. */
const struct embed_kernels *embed_kernels_best(void);

#endif

/* The arithmetic of the encoder for any processor, and the choice between it and that of newer ones. */
#define KERNELS embed_kernels_any
#include "core/embed/embed_kernels_code.h"

const struct embed_kernels *embed_kernels_best(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &embed_kernels_avx2;
#endif
    return &embed_kernels_any;
}

/* The portable arithmetic of the encoder, and the choice of the fastest version at run time. */
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

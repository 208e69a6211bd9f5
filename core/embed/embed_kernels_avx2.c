/* The arithmetic of the encoder for processors with AVX2 and FMA. */
#if defined __x86_64__ /* CMakeLists.txt sets the compiler flags */
#define KERNELS embed_kernels_avx2
#include "core/embed/embed_kernels_code.h"
#endif

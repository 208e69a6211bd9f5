/* A fast, non-cryptographic hash. */
#include "core/base/hash.h"

#include <endian.h>
#include <string.h>

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *b = bytes;
    for (; len >= 8; b += 8, len -= 8) { /* whole responses are hashed: eight bytes per step, with the same
                                            byte order on every machine */
        uint64_t word;
        memcpy(&word, b, 8);
        unsigned __int128 product = (unsigned __int128)(seed ^ le64toh(word)) * UINT64_C(0x9e3779b97f4a7c15);
        seed = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    for (size_t i = 0; i < len; i++)
        seed = (seed ^ b[i]) * UINT64_C(0x100000001b3);
    return seed;
}

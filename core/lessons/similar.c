/* Index keys for nearly identical texts: bands of min-hashes over trigrams. */
#include "core/lessons/similar.h"

#include <stddef.h>
#include <string.h>

#include "core/base/hash.h"

enum { ROWS = 4, HASHES = SIMILAR_KEYS * ROWS }; /* a key is made of four min-hashes */

static uint32_t mix(uint32_t h)
{
    h ^= h >> 16;
    h *= UINT32_C(0x7feb352d);
    h ^= h >> 15;
    h *= UINT32_C(0x846ca68b);
    return h ^ (h >> 16);
}

/* Folds letters to lower case; keeps digits and the bytes of non-ASCII characters; 0 for everything else. */
static unsigned char fold(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80 ? c : 0;
}

static void add_trigram(uint32_t trigram, uint32_t least[HASHES])
{
    uint32_t h = mix(trigram);
    for (uint32_t i = 0; i < HASHES; i++) {
        h = h * UINT32_C(1664525) + UINT32_C(1013904223) + i; /* a further hash of the same trigram */
        uint32_t value = h ^ (h >> 15);
        if (value < least[i])
            least[i] = value;
    }
}

void similar_keys(const char *owner, const char *text, int32_t keys[SIMILAR_KEYS])
{
    uint32_t least[HASHES];
    memset(least, 0xff, sizeof least);
    /* Each word is padded with two blanks before and one after, as in pg_trgm. */
    uint32_t window = 0x2020;
    for (const unsigned char *p = (const unsigned char *)text;; p++) {
        unsigned char c = fold(*p);
        if (c) {
            window = (window << 8 | c) & 0xffffff;
            add_trigram(window, least);
        } else if (window != 0x2020) {
            add_trigram((window << 8 | ' ') & 0xffffff, least);
            window = 0x2020;
        }
        if (!*p)
            break;
    }
    uint32_t seed = (uint32_t)hash_bytes(owner, strlen(owner), HASH_SEED);
    for (int k = 0; k < SIMILAR_KEYS; k++) {
        uint32_t h = seed + (uint32_t)k;
        for (int r = 0; r < ROWS; r++)
            h = mix(h ^ least[k * ROWS + r]);
        memcpy(&keys[k], &h, sizeof h);
    }
}

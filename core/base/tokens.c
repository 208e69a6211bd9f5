/* An estimate of how many tokens of a language model a text takes, without any model's vocabulary. */
#include "core/base/tokens.h"

#include <stdbool.h>

enum { UUID_LEN = 36, UUID_TOKENS = 26 };

enum sort { LETTER, DIGIT, SPACE, OTHER };

/* The weight of each byte; the lead byte of a character carries the weight of the whole character. */
static const struct {
    unsigned char sort, weight;
} bytes[256] = {
    ['a' ... 'z'] = { LETTER, 1 },  ['A' ... 'Z'] = { LETTER, 2 },  ['0' ... '9'] = { DIGIT, 1 },
    [' '] = { SPACE, 1 },           [0 ... 31] = { OTHER, 1 },      ['!' ... '/'] = { OTHER, 1 },
    [':' ... '@'] = { OTHER, 1 },   ['[' ... '`'] = { OTHER, 1 },   ['{' ... 0x7f] = { OTHER, 1 },
    [0x80 ... 0xbf] = { OTHER, 0 }, [0xc0 ... 0xdf] = { OTHER, 1 }, [0xe0 ... 0xef] = { OTHER, 2 },
    [0xf0 ... 0xff] = { OTHER, 3 },
};

/* The tokens of a run whose characters have this total weight. */
static size_t run_cost(enum sort sort, size_t weight)
{
    switch (sort) {
    case LETTER:
        return (weight + 3) / 4;
    case DIGIT:
        return (weight + 1) / 2;
    case SPACE:
        return weight - 1;
    case OTHER:
        break;
    }
    return weight;
}

static bool is_word(char c)
{
    return bytes[(unsigned char)c].sort == LETTER || bytes[(unsigned char)c].sort == DIGIT;
}

/* Whether a UUID starts at `i` and stands alone. */
static bool is_uuid(const char *text, size_t len, size_t i)
{
    if (len - i < UUID_LEN || text[i + 8] != '-' || (i && is_word(text[i - 1])) ||
        (len - i > UUID_LEN && is_word(text[i + UUID_LEN])))
        return false;
    for (size_t k = 0; k < UUID_LEN; k++) {
        const char c = text[i + k];
        const bool dash = k == 8 || k == 13 || k == 18 || k == 23;
        if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}

size_t tokens_estimate(const char *text, size_t len)
{
    size_t tokens = 0, weight = 0;
    unsigned char sort = OTHER;
    for (size_t i = 0; i < len; i++) {
        if (is_uuid(text, len, i)) {
            tokens += run_cost(sort, weight) + UUID_TOKENS;
            sort = OTHER;
            weight = 0;
            i += UUID_LEN - 1;
            continue;
        }
        unsigned char c = (unsigned char)text[i];
        if (bytes[c].sort != sort) {
            tokens += run_cost(sort, weight);
            sort = bytes[c].sort;
            weight = 0;
        }
        weight += bytes[c].weight;
    }
    return tokens + run_cost(sort, weight);
}

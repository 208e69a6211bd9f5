/* An estimate of how many tokens of a language model a text takes, without any model's vocabulary. */
#include "core/base/tokens.h"

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

size_t tokens_estimate(const char *text, size_t len)
{
    size_t tokens = 0, weight = 0;
    unsigned char sort = OTHER;
    for (size_t i = 0; i < len; i++) {
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

/* How many tokens of a language model a text costs, estimated without any model's vocabulary. */
#include "core/tokens.h"

enum sort { LETTER, DIGIT, SPACE, OTHER };

static enum sort sort_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return LETTER;
    return c >= '0' && c <= '9' ? DIGIT : c == ' ' ? SPACE : OTHER;
}

static size_t weight_of(enum sort sort, unsigned char c)
{
    if (sort == LETTER)
        return c <= 'Z' ? 2 : 1;
    if (c < 0x80)
        return 1;
    /* The lead byte pays for the whole character. */
    return c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
}

/* What a run costs whose characters weigh `weight` together. */
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
    size_t tokens = 0;
    for (size_t i = 0; i < len;) {
        enum sort sort = sort_of((unsigned char)text[i]);
        size_t weight = 0;
        for (; i < len && sort_of((unsigned char)text[i]) == sort; i++)
            weight += weight_of(sort, (unsigned char)text[i]);
        tokens += run_cost(sort, weight);
    }
    return tokens;
}

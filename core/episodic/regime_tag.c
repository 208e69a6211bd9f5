/* Regime tags and their comparison. */
#include "core/episodic/regime_tag.h"

#include <stdlib.h>
#include <string.h>

const struct regime_tag *regime_tag_find(const struct regime_tags *tags, const char *name)
{
    for (size_t i = 0; i < tags->count; i++)
        if (strcmp(tags->items[i].name, name) == 0)
            return &tags->items[i];
    return NULL;
}

/* A number as text, because it may have more digits than any type holds. */
struct number {
    bool negative;
    const char *digit; /* the first digit that is not zero; NULL: the number is zero */
    long power;        /* the power of ten of that digit */
};

static struct number number_read(const char *text)
{
    struct number n = { .negative = *text == '-' };
    const char *p = text + n.negative;
    const size_t whole = strspn(p, "0123456789");
    const char *end = p + strcspn(p, "eE");
    for (const char *d = p; d < end && !n.digit; d++)
        if (*d != '0' && *d != '.') {
            n.digit = d;
            n.power = d < p + whole ? (long)(p + whole - d) - 1 : (long)(p + whole - d);
        }
    if (*end)
        n.power += strtol(end + 1, NULL, 10);
    return n;
}

/* Returns the next digit and moves past it; 0 after the last one. */
static char number_next(const char **p)
{
    if (**p == '.')
        ++*p;
    return **p >= '0' && **p <= '9' ? *(*p)++ : '\0';
}

static bool number_same(const char *a, const char *b)
{
    struct number x = number_read(a), y = number_read(b);
    if (!x.digit || !y.digit)
        return !x.digit && !y.digit;
    if (x.negative != y.negative || x.power != y.power)
        return false;
    for (;;) {
        char c = number_next(&x.digit), d = number_next(&y.digit);
        if (!c && !d)
            return true;
        if ((c ? c : '0') != (d ? d : '0'))
            return false;
    }
}

bool regime_tag_same(const struct regime_tag *a, const struct regime_tag *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == REGIME_TAG_NUMBER ? number_same(a->text, b->text) : strcmp(a->text, b->text) == 0;
}

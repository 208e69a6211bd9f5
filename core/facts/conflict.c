/* Contradictions about one key: which of several statements to show first, and whether a text agrees. */
#include "core/facts/conflict.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const double trusted_from = 0.7; /* fact_needs_verification of the database */

/* 0 is shown first. */
static int group_of(const struct conflict_statement *s)
{
    if (s->corrected)
        return 0;
    return strtod(s->confidence, NULL) < trusted_from ? 2 : 1;
}

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* The last comparisons only make the order the same every time. */
static int compare(const void *left, const void *right)
{
    const struct conflict_statement *a = left, *b = right;
    const int groups = group_of(a) - group_of(b);
    const double trust_a = strtod(a->confidence, NULL), trust_b = strtod(b->confidence, NULL);
    if (groups)
        return groups;
    if (a->at_us != b->at_us)
        return a->at_us > b->at_us ? -1 : 1;
    if (trust_a < trust_b || trust_a > trust_b)
        return trust_a > trust_b ? -1 : 1;
    const int scopes = compare_texts(a->scope, b->scope);
    return scopes ? scopes : compare_texts(a->id, b->id);
}

void conflict_sort(struct conflict_statement *list, size_t count)
{
    if (count > 1)
        qsort(list, count, sizeof *list, compare);
}

/* Whether the byte belongs to a word or, with a digit beside it, to a number. Bytes of other scripts do. */
static bool continues(unsigned char c, unsigned char beyond)
{
    return isalnum(c) || c == '_' || c >= 0x80 || ((c == '.' || c == ',') && isdigit(beyond));
}

static bool stands_alone(const char *text, const char *at, size_t len)
{
    const unsigned char before = at > text ? (unsigned char)at[-1] : 0;
    const unsigned char before_that = at > text + 1 ? (unsigned char)at[-2] : 0;
    const unsigned char after = (unsigned char)at[len];
    const unsigned char after_that = after ? (unsigned char)at[len + 1] : 0;
    return !continues(before, before_that) && !continues(after, after_that);
}

static bool is_same(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
            return false;
    return true;
}

bool conflict_text_has(const char *text, const char *value)
{
    const size_t len = strlen(value), text_len = strlen(text);
    if (!len)
        return false;
    for (size_t i = 0; i + len <= text_len; i++)
        if (is_same(text + i, value, len) && stands_alone(text, text + i, len))
            return true;
    return false;
}

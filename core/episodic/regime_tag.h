/* Regime tags: the caller's description of the market, as names with a text, a number or a boolean. */
#ifndef DAYBOOK_CORE_EPISODIC_REGIME_TAG_H
#define DAYBOOK_CORE_EPISODIC_REGIME_TAG_H

#include <stdbool.h>
#include <stddef.h>

enum regime_tag_kind { REGIME_TAG_TEXT, REGIME_TAG_NUMBER, REGIME_TAG_BOOL };

struct regime_tag {
    const char *name;
    enum regime_tag_kind kind;
    const char *text; /* a number as in JSON; a boolean as "true" or "false" */
};

struct regime_tags {
    size_t count;
    const struct regime_tag *items;
};

/* The tag of that name, or NULL. */
const struct regime_tag *regime_tag_find(const struct regime_tags *tags, const char *name);

/* Compares the values: numbers by value (1.50 equals 15e-1), texts and booleans exactly. */
bool regime_tag_same(const struct regime_tag *a, const struct regime_tag *b);

#endif

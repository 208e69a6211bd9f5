/* The market as a caller describes it: names with texts, numbers or booleans, and how two of them compare. */
#ifndef DAYBOOK_CORE_EPISODIC_REGIME_TAG_H
#define DAYBOOK_CORE_EPISODIC_REGIME_TAG_H

#include <stdbool.h>
#include <stddef.h>

enum regime_tag_kind { REGIME_TAG_TEXT, REGIME_TAG_NUMBER, REGIME_TAG_BOOL };

struct regime_tag {
    const char *name;
    enum regime_tag_kind kind;
    const char *text; /* of a number as JSON writes it, of a boolean "true" or "false" */
};

struct regime_tags {
    size_t count;
    const struct regime_tag *items;
};

/* The one of that name, or NULL. */
const struct regime_tag *regime_tag_find(const struct regime_tags *tags, const char *name);

/* Whether the values are the same: numbers by their value (1.50 is 15e-1), all else letter for letter. */
bool regime_tag_same(const struct regime_tag *a, const struct regime_tag *b);

#endif

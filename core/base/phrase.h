/* The words of a text, for comparisons that ignore case and punctuation. */
#ifndef DAYBOOK_CORE_BASE_PHRASE_H
#define DAYBOOK_CORE_BASE_PHRASE_H

#include <stdbool.h>

#include "core/base/arena.h"

/* The words of valid UTF-8 in lower case, each between single spaces: " never short eth ". White space,
 * punctuation and marks separate words; invisible characters (a zero-width space, a direction mark) are
 * ignored. A text contains a phrase iff its words contain the words of the phrase as a string. */
const char *phrase_words(struct arena *arena, const char *text);

/* Whether phrase_words found any word. */
bool phrase_has_words(const char *words);

#endif

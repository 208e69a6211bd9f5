/* The words of a text, for comparisons that look at nothing else. */
#ifndef DAYBOOK_CORE_BASE_PHRASE_H
#define DAYBOOK_CORE_BASE_PHRASE_H

#include <stdbool.h>

#include "core/base/arena.h"

/* The words of valid UTF-8 in lower case, one space before the first, between two and behind the last: "
 * never short eth ". White space, punctuation and marks part words; what shows nothing (a zero-width space, a
 * direction) is as if it were not there. A text holds a phrase iff its words hold the phrase's as a string.
 */
const char *phrase_words(struct arena *arena, const char *text);

/* True for the words of a text that has any. */
bool phrase_has_words(const char *words);

#endif

/* "Did you mean": the known word that is closest to a misspelled one. */
#ifndef DAYBOOK_CORE_BASE_SPELLING_H
#define DAYBOOK_CORE_BASE_SPELLING_H

#include <stddef.h>

enum { SPELLING_CHARS = 64 }; /* no longer word is compared */

struct spelling {
    char word[SPELLING_CHARS + 1]; /* in snake_case */
    size_t len;
    const char *best; /* NULL: no known word is close */
    int distance;     /* of a closer one than `best`, at most */
};

/* Call spelling_try for each known word, then read `best`. Upper case, camelCase and hyphens are no mistakes.
 * Else one letter may be missing, too many, wrong or swapped with its neighbour in words of four letters and
 * more, two in words of six and more. */
struct spelling spelling_begin(const char *word);
void spelling_try(struct spelling *s, const char *known);

#endif

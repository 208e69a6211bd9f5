/* The hash of a lessons text, by which a trade names the lessons it was made under. */
#ifndef DAYBOOK_CORE_REFLECT_LESSONS_HASH_H
#define DAYBOOK_CORE_REFLECT_LESSONS_HASH_H

#include <stdbool.h>
#include <stddef.h>

enum { LESSONS_HASH_SIZE = 17 }; /* 16 hex digits and a NUL */

/* The first 16 hex digits, in lower case, of the SHA-256 of the text, in which every run of Unicode white
 * space is one space and none is left at the ends. So wrapping or indenting a text does not change its hash.
 * The text must be valid UTF-8. Test vectors for other implementations are in tests/data/lessons_hash.tsv. */
void lessons_hash(const char *text, size_t len, char out[LESSONS_HASH_SIZE]);

/* True for 16 lower-case hex digits. */
bool lessons_hash_is_valid(const char *text);

#endif

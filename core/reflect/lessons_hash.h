/* The name of a lessons text: by it a trade knows which revision of the lessons it was made under. */
#ifndef DAYBOOK_CORE_REFLECT_LESSONS_HASH_H
#define DAYBOOK_CORE_REFLECT_LESSONS_HASH_H

#include <stdbool.h>
#include <stddef.h>

enum { LESSONS_HASH_SIZE = 17 }; /* 16 hex digits and a NUL */

/* Of valid UTF-8: every run of Unicode white space becomes one space, none is left at the ends, and of the
 * SHA-256 of that the first 16 lower-case hex digits count. So a text that only was wrapped or indented
 * otherwise keeps its hash. Vectors for other languages are in tests/data/lessons_hash.tsv. */
void lessons_hash(const char *text, size_t len, char out[LESSONS_HASH_SIZE]);

/* True for 16 lower-case hex digits. */
bool lessons_hash_is_valid(const char *text);

#endif

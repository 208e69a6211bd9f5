/* Index keys for nearly identical texts. */
#ifndef DAYBOOK_CORE_LESSONS_SIMILAR_H
#define DAYBOOK_CORE_LESSONS_SIMILAR_H

#include <stdint.h>

enum { SIMILAR_KEYS = 32 };

/* The probability that two texts share a key depends on the share J of their common trigrams, which is
 * pg_trgm's similarity(): 99.9 % for J = 0.7, 99 % for 0.6, 74 % for 0.45, 0.02 % for 0.05. So the index
 * finds the candidates, however many texts there are, and similarity() decides. The same text always has the
 * same keys. Texts of different owners share none. */
void similar_keys(const char *owner, const char *text, int32_t keys[SIMILAR_KEYS]);

#endif

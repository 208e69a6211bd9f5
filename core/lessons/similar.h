/* Keys by which texts that read nearly the same find each other in an index. */
#ifndef DAYBOOK_CORE_LESSONS_SIMILAR_H
#define DAYBOOK_CORE_LESSONS_SIMILAR_H

#include <stdint.h>

enum { SIMILAR_KEYS = 32 };

/* Two texts share a key with a probability that depends on how many of their trigrams they share (J, as
 * pg_trgm's similarity() has it): 99.9 % for J = 0.7, 99 % for 0.6, 74 % for 0.45, 0.02 % for 0.05. So the
 * index gives the candidates, whatever the number of texts, and similarity() decides. The same text always
 * has the same keys; texts of different owners never meet. */
void similar_keys(const char *owner, const char *text, int32_t keys[SIMILAR_KEYS]);

#endif

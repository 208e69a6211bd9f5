/* UTF-8 text: validation, counting, white space. */
#ifndef DAYBOOK_CORE_BASE_UTF8_H
#define DAYBOOK_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offset of the first byte that is not part of a valid character, or `len`. Surrogates, overlong forms
 * and code points above U+10FFFF are not valid; NUL is. */
size_t utf8_check(const char *text, size_t len);

/* The number of characters (code points) of valid text. */
size_t utf8_count(const char *text, size_t len);

/* Returns the character at *text, which must be inside valid text, and advances past it. */
uint32_t utf8_next(const char **text);

/* The length of the longest prefix of at most `max` bytes that does not split a character. */
size_t utf8_cut(const char *text, size_t len, size_t max);

/* Unicode's White_Space property. */
bool utf8_is_space(uint32_t character);
/* C0, DEL and C1. */
bool utf8_is_control(uint32_t character);

#endif

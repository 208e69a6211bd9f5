/* UTF-8 text: is it valid, how many characters has it, which of them are white space. */
#ifndef DAYBOOK_CORE_BASE_UTF8_H
#define DAYBOOK_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offset of the first byte that is no part of a valid character, `len` when there is none. Surrogates,
 * overlong forms and what is above U+10FFFF are not valid; NUL is. */
size_t utf8_check(const char *text, size_t len);

/* The characters (code points) of valid text. */
size_t utf8_count(const char *text, size_t len);

/* The character at *text, which must be inside valid text, and a step behind it. */
uint32_t utf8_next(const char **text);

/* The length of the longest start of valid text that has at most `max` bytes and cuts no character. */
size_t utf8_cut(const char *text, size_t len, size_t max);

/* Unicode's White_Space property. */
bool utf8_is_space(uint32_t character);
/* C0, DEL and C1. */
bool utf8_is_control(uint32_t character);

#endif

/* The grammar and the limits of JSON numbers. */
#ifndef DAYBOOK_SERVER_JSON_NUMBER_H
#define DAYBOOK_SERVER_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { NUMBER_CHARS = 64, NUMBER_EXPONENT = 308 };

/* The length of the number at the start of a NUL-terminated text; 0: no number. */
size_t number_len(const char *text);

/* Whether a number is within the limits of the API: at most NUMBER_CHARS characters, an exponent within
 * ±NUMBER_EXPONENT, and a double neither overflows nor underflows to zero. */
bool number_fits(const char *text, size_t len);

/* The nearest double. */
double number_double(const char *text, size_t len);

#endif

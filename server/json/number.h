/* Numbers as JSON writes them: their grammar and their limits. */
#ifndef DAYBOOK_SERVER_JSON_NUMBER_H
#define DAYBOOK_SERVER_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { NUMBER_CHARS = 64, NUMBER_EXPONENT = 308 };

/* The length of the number at the start of a text that ends with a NUL; 0 if there is none. */
size_t number_len(const char *text);

/* Whether a number of that length is within the limits of the API: it has at most NUMBER_CHARS characters and
 * an exponent within ±NUMBER_EXPONENT, and a double can hold it: it neither overflows nor becomes zero. */
bool number_fits(const char *text, size_t len);

/* The nearest double of a number of that length. */
double number_double(const char *text, size_t len);

#endif

/* An estimate of how many tokens of a language model a text takes, without any model's vocabulary. */
#ifndef DAYBOOK_CORE_BASE_TOKENS_H
#define DAYBOOK_CORE_BASE_TOKENS_H

#include <stddef.h>

/* The estimate for valid UTF-8, meant to be on the high side for prose, figures, tickers and markup:
 *   a run of ASCII letters      one for every four letters or part of them, a capital counting as two letters
 *   a run of digits             one for every two digits or part of them
 *   one space between words     none; every further space of a run one
 *   any other ASCII character   one
 *   a character of two bytes    one; of three bytes two; of four bytes three
 *   a UUID in lower case        26, whatever its digits: the same records take the same budget under other
 * ids So a text that is cut inside a UUID may cost more than one with the whole UUID. Runs end with the line,
 * so the estimate of a text is the sum of the estimates of its lines (each with its newline). Against three
 * public vocabularies, on a thousand lines of prose, tables and code, it was about 1.5 times the real count,
 * and below it for one line, by one token. */
size_t tokens_estimate(const char *text, size_t len);

#endif

/* Exact decimal numbers for money, prices and sizes. */
#ifndef DAYBOOK_CORE_BASE_DECIMAL_H
#define DAYBOOK_CORE_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* 20 digits before the point and 18 behind it, as numeric(38,18) has them. Behind the point there are as many
 * as the smallest unit of any coin needs: at a scale of 12, the price of a coin at 0.0000012345678 would be
 * cut, and a position of 10^12 of them be wrong by half a dollar. */
enum {
    DECIMAL_SCALE = 18,
    DECIMAL_TEXT_SIZE = 41, /* sign, 20 digits, point, 18 digits, NUL */
};

/* What does not fit is not valid, and so is everything computed from it: a chain of sums is written as it is
 * thought, and its end is checked once. Nothing ever wraps. */
struct decimal {
    __int128 units; /* of 10^-18; use the functions */
};

enum decimal_read {
    DECIMAL_EXACT,
    DECIMAL_ROUNDED, /* it has digits beyond the 18th: a caller that stores it keeps its text */
    DECIMAL_TOO_LARGE,
    DECIMAL_NOT_A_NUMBER,
};

/* Reads a number as JSON writes it, exponent and all; `out` is set for the first two results and not valid
 * for the others. */
enum decimal_read decimal_parse(const char *text, struct decimal *out);

/* The shortest text that reads back the same: no exponent, no zeros at the end, no "-0". What is not valid is
 * "null". */
void decimal_text(struct decimal d, char out[DECIMAL_TEXT_SIZE]);
/* With exactly that many digits behind the point (0 to 18), rounded; no "-0.00" either. */
void decimal_fixed(struct decimal d, int digits, char out[DECIMAL_TEXT_SIZE]);

struct decimal decimal_from_int(int64_t value);
bool decimal_is_valid(struct decimal d);

/* Rounding is half to even, everywhere. Division by zero is not valid. */
struct decimal decimal_add(struct decimal a, struct decimal b);
struct decimal decimal_sub(struct decimal a, struct decimal b);
struct decimal decimal_mul(struct decimal a, struct decimal b);
struct decimal decimal_times(struct decimal a, int64_t factor);
struct decimal decimal_div(struct decimal a, struct decimal b);
struct decimal decimal_neg(struct decimal a);
struct decimal decimal_round(struct decimal a, int digits);
/* Not valid when one of them is not. */
struct decimal decimal_min(struct decimal a, struct decimal b);
struct decimal decimal_max(struct decimal a, struct decimal b);

/* Below, at or above zero, as strcmp says it. Both must be valid. */
int decimal_compare(struct decimal a, struct decimal b);
int decimal_sign(struct decimal a);

#endif

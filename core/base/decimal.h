/* Exact decimal numbers for money, prices and sizes. */
#ifndef DAYBOOK_CORE_BASE_DECIMAL_H
#define DAYBOOK_CORE_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* 20 digits before the point and 18 after it, like numeric(38,18). 18 digits cover the smallest unit of any
 * coin: with 12, a price of 0.0000012345678 would lose a digit, and a position of 10^12 such coins would be
 * off by half a dollar. */
enum {
    DECIMAL_SCALE = 18,
    DECIMAL_TEXT_SIZE = 41, /* sign, 20 digits, point, 18 digits, NUL */
};

/* A result that does not fit is not valid, and neither is anything computed from it, so a chain of
 * operations needs one check at its end. Nothing ever wraps. */
struct decimal {
    __int128 units; /* of 10^-18; use the functions */
};

enum decimal_read {
    DECIMAL_EXACT,
    DECIMAL_ROUNDED, /* digits beyond the 18th were rounded away; a caller that stores the number keeps its
                        text */
    DECIMAL_TOO_LARGE,
    DECIMAL_NOT_A_NUMBER,
};

/* Reads a JSON number. `out` is set for the first two results and not valid for the others. */
enum decimal_read decimal_parse(const char *text, struct decimal *out);

/* The shortest text that reads back as the same number: no exponent, no trailing zeros, no "-0". "null" when
 * not valid. */
void decimal_text(struct decimal d, char out[DECIMAL_TEXT_SIZE]);
/* With exactly `digits` (0 to 18) after the point, rounded; never "-0.00". */
void decimal_fixed(struct decimal d, int digits, char out[DECIMAL_TEXT_SIZE]);

struct decimal decimal_from_int(int64_t value);
bool decimal_is_valid(struct decimal d);

/* All rounding is half to even. The result of a division by zero is not valid. */
struct decimal decimal_add(struct decimal a, struct decimal b);
struct decimal decimal_sub(struct decimal a, struct decimal b);
struct decimal decimal_mul(struct decimal a, struct decimal b);
struct decimal decimal_times(struct decimal a, int64_t factor);
struct decimal decimal_div(struct decimal a, struct decimal b);
struct decimal decimal_neg(struct decimal a);
struct decimal decimal_round(struct decimal a, int digits);
/* Not valid when either argument is not. */
struct decimal decimal_min(struct decimal a, struct decimal b);
struct decimal decimal_max(struct decimal a, struct decimal b);

/* Negative, zero or positive, like strcmp. The arguments must be valid. */
int decimal_compare(struct decimal a, struct decimal b);
int decimal_sign(struct decimal a);

#endif

/* Exact decimal numbers for money, prices and sizes. */
#include "core/base/decimal.h"

#include <string.h>

typedef unsigned __int128 magnitude;

#define ONE UINT64_C(1000000000000000000) /* 10^18: the units of 1 */

static const magnitude limit = (magnitude)ONE * ONE * 100; /* 10^38: the first magnitude that does not fit */
static const struct decimal not_valid = { -((__int128)1 << 126) * 2 };

bool decimal_is_valid(struct decimal d)
{
    return d.units != not_valid.units;
}

/* The absolute value of units; 2^127 for a decimal that is not valid. */
static magnitude magnitude_of(struct decimal d)
{
    return d.units < 0 ? -(magnitude)d.units : (magnitude)d.units;
}

static struct decimal signed_of(bool negative, magnitude m)
{
    if (m >= limit)
        return not_valid;
    return (struct decimal){ negative ? -(__int128)m : (__int128)m };
}

/* Rounds half to even. `half` tells how the part that was cut off compares with one half. */
static magnitude round_half_even(magnitude cut, int half)
{
    return cut + (half > 0 || (half == 0 && (cut & 1)));
}

static const uint64_t powers_of_ten[DECIMAL_SCALE + 1] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    ONE,
};

/* The digits before the point, and those after it in units of 10^-18, or of 10^-digits once rounded. */
struct parts {
    magnitude whole;
    uint64_t behind;
};

/* A 128-bit division is slow, so it is done once; the remainder comes from a multiplication. */
static struct parts parts_of(struct decimal d)
{
    const magnitude m = magnitude_of(d), whole = m / ONE;
    return (struct parts){ whole, (uint64_t)(m - whole * ONE) };
}

/* Rounds the part after the point to `digits` digits. */
static struct parts parts_rounded(struct decimal d, int digits)
{
    struct parts p = parts_of(d);
    const uint64_t step = powers_of_ten[DECIMAL_SCALE - digits], cut = p.behind / step;
    const uint64_t rest = p.behind - cut * step, other = step - rest;
    const bool odd = (digits > 0 ? cut : (uint64_t)p.whole) & 1;
    p.behind = cut + (rest > other || (rest == other && odd));
    if (p.behind == powers_of_ten[digits]) {
        p.behind = 0;
        p.whole++;
    }
    return p;
}

/* ---- text ---- */

struct reader {
    magnitude units;
    int half; /* how the part cut off compares with half a unit */
    bool any, cut, too_large;
};

static void take_digit(struct reader *r, int digit, int64_t place)
{
    if (place >= -DECIMAL_SCALE) {
        r->too_large |= r->units > limit / 10;
        if (!r->too_large)
            r->units = r->units * 10 + (unsigned)digit;
    } else if (place == -DECIMAL_SCALE - 1) {
        r->half = digit == 5 ? 0 : digit > 5 ? 1 : -1;
        r->cut |= digit > 0;
    } else if (digit > 0) {
        r->half += r->half == 0; /* a digit after the half makes it more than a half */
        r->cut = true;
    }
    r->any |= digit > 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads an exponent; false when it is malformed. It is capped at a billion, where it no longer matters. */
static bool read_exponent(const char *text, int64_t *exponent)
{
    *exponent = 0;
    if (*text == '\0')
        return true;
    if (*text != 'e' && *text != 'E')
        return false;
    text++;
    bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++)
        if (*exponent < 1000000000)
            *exponent = *exponent * 10 + (*text - '0');
    if (negative)
        *exponent = -*exponent;
    return *text == '\0';
}

/* Skips digits and appends them to the value, which wraps if there are too many. */
static size_t read_digits(const char **text, uint64_t *value)
{
    const char *start = *text, *at = start;
    for (; is_digit(*at); at++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    *text = at;
    return (size_t)(at - start);
}

/* A JSON number: how many digits it has before and after the point, and all digits as one integer. */
struct shape {
    size_t whole, fraction;
    uint64_t digits;
    int64_t exponent;
};

static bool read_shape(const char *text, struct shape *s)
{
    const bool zero = *text == '0';
    *s = (struct shape){ 0 };
    s->whole = read_digits(&text, &s->digits);
    if (s->whole == 0 || (s->whole > 1 && zero))
        return false;
    if (*text == '.') {
        text++;
        s->fraction = read_digits(&text, &s->digits);
        if (s->fraction == 0)
            return false;
    }
    return read_exponent(text, &s->exponent);
}

enum decimal_read decimal_parse(const char *text, struct decimal *out)
{
    *out = not_valid;
    bool negative = *text == '-';
    text += negative;
    struct shape s;
    if (!read_shape(text, &s))
        return DECIMAL_NOT_A_NUMBER;

    if (s.exponent == 0 && s.whole + s.fraction <= DECIMAL_SCALE) { /* the usual case: every digit fits */
        *out = signed_of(negative, (magnitude)s.digits * powers_of_ten[DECIMAL_SCALE - s.fraction]);
        return DECIMAL_EXACT;
    }

    struct reader r = { .half = -1 };
    int64_t place = (int64_t)s.whole + s.exponent;
    for (size_t i = 0; i < s.whole; i++)
        take_digit(&r, text[i] - '0', --place);
    for (size_t i = 0; i < s.fraction; i++)
        take_digit(&r, text[s.whole + 1 + i] - '0', --place);
    while (r.any && !r.too_large && place > -DECIMAL_SCALE) /* zeros that the exponent implies */
        take_digit(&r, 0, --place);

    *out = r.too_large ? not_valid : signed_of(negative, round_half_even(r.units, r.half));
    return !decimal_is_valid(*out) ? DECIMAL_TOO_LARGE : r.cut ? DECIMAL_ROUNDED : DECIMAL_EXACT;
}

/* Writes at least `least` digits backwards from the end; returns the start. */
static char *put_digits(char *end, uint64_t value, int least)
{
    for (; value > 0 || least > 0; least--, value /= 10)
        *--end = (char)('0' + (int)(value % 10));
    return end;
}

static void put(bool negative, struct parts p, int digits, char out[DECIMAL_TEXT_SIZE])
{
    char text[DECIMAL_TEXT_SIZE], *start = text + sizeof text;
    *--start = '\0';
    if (digits > 0) {
        start = put_digits(start, p.behind, digits);
        *--start = '.';
    }
    if (p.whole > UINT64_MAX) { /* more than 64 bits: the last 18 digits first, then the rest */
        start = put_digits(start, (uint64_t)(p.whole % ONE), DECIMAL_SCALE);
        p.whole /= ONE;
    }
    start = put_digits(start, (uint64_t)p.whole, 1);
    if (negative)
        *--start = '-';
    memcpy(out, start, (size_t)(text + sizeof text - start));
}

void decimal_text(struct decimal d, char out[DECIMAL_TEXT_SIZE])
{
    if (!decimal_is_valid(d)) {
        memcpy(out, "null", 5);
        return;
    }
    struct parts p = parts_of(d);
    int digits = p.behind ? DECIMAL_SCALE : 0;
    const uint64_t half = powers_of_ten[DECIMAL_SCALE / 2];
    if (digits > 0 && p.behind % half == 0) { /* the usual case, in half the steps */
        p.behind /= half;
        digits = DECIMAL_SCALE / 2;
    }
    for (; digits > 0 && p.behind % 10 == 0; digits--)
        p.behind /= 10;
    put(d.units < 0, p, digits, out);
}

void decimal_fixed(struct decimal d, int digits, char out[DECIMAL_TEXT_SIZE])
{
    const struct parts p = parts_rounded(d, digits);
    if (!decimal_is_valid(d) || p.whole >= limit / ONE) {
        memcpy(out, "null", 5);
        return;
    }
    put(d.units < 0 && (p.whole || p.behind), p, digits, out);
}

/* ---- arithmetic ---- */

struct decimal decimal_from_int(int64_t value)
{
    return (struct decimal){ (__int128)value * (__int128)ONE };
}

struct decimal decimal_add(struct decimal a, struct decimal b)
{
    __int128 sum;
    if (!decimal_is_valid(a) || !decimal_is_valid(b) || __builtin_add_overflow(a.units, b.units, &sum))
        return not_valid;
    return signed_of(sum < 0, magnitude_of((struct decimal){ sum }));
}

struct decimal decimal_neg(struct decimal a)
{
    return decimal_is_valid(a) ? (struct decimal){ -a.units } : a;
}

struct decimal decimal_sub(struct decimal a, struct decimal b)
{
    return decimal_add(a, decimal_neg(b));
}

/* The product in four words, lowest first. */
static void multiply(magnitude a, magnitude b, uint64_t product[4])
{
    const uint64_t x[2] = { (uint64_t)a, (uint64_t)(a >> 64) }, y[2] = { (uint64_t)b, (uint64_t)(b >> 64) };
    memset(product, 0, 4 * sizeof *product);
    for (int i = 0; i < 2; i++) {
        magnitude carry = 0;
        for (int j = 0; j < 2; j++) {
            carry += (magnitude)x[i] * y[j] + product[i + j];
            product[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
        product[i + 2] = (uint64_t)carry;
    }
}

struct decimal decimal_mul(struct decimal a, struct decimal b)
{
    if (!decimal_is_valid(a) || !decimal_is_valid(b))
        return not_valid;
    uint64_t words[4], rest = 0;
    multiply(magnitude_of(a), magnitude_of(b), words);
    for (int i = 3; i >= 0; i--) { /* the product carries the scale twice: divide by 10^18, word by word */
        const magnitude part = (magnitude)rest << 64 | words[i];
        words[i] = (uint64_t)(part / ONE);
        rest = (uint64_t)part - words[i] * ONE;
    }
    if (words[3] || words[2])
        return not_valid;
    magnitude cut = (magnitude)words[1] << 64 | words[0];
    if (cut >= limit)
        return not_valid;
    return signed_of((a.units < 0) != (b.units < 0),
                     round_half_even(cut, (rest > ONE / 2) - (rest < ONE / 2)));
}

struct decimal decimal_times(struct decimal a, int64_t factor)
{
    __int128 product;
    if (!decimal_is_valid(a) || __builtin_mul_overflow(a.units, (__int128)factor, &product))
        return not_valid;
    return signed_of(product < 0, magnitude_of((struct decimal){ product }));
}

struct quotient {
    magnitude value, rest;
};

static struct quotient divide(magnitude dividend, magnitude divisor)
{
    const magnitude value = dividend / divisor;
    return (struct quotient){ value, dividend - value * divisor };
}

/* m * 10^18 / divisor, for a divisor above 2^98, bit by bit. The doubled remainder fits because the divisor
 * is below 2^127. */
static struct quotient divide_bits(magnitude m, magnitude divisor)
{
    uint64_t words[4];
    struct quotient q = { 0 };
    multiply(m, ONE, words);
    for (int bit = 191; bit >= 0; bit--) { /* 127 bits times 60 */
        q.rest = q.rest << 1 | (words[bit / 64] >> (bit % 64) & 1);
        q.value <<= 1;
        if (q.rest >= divisor) {
            q.rest -= divisor;
            q.value |= 1;
        }
    }
    return q;
}

/* Long division: the integer part, then the 18 digits after the point, nine at a time. */
static struct quotient divide_digits(magnitude m, magnitude divisor)
{
    struct quotient q = divide(m, divisor);
    if (q.value >= limit / ONE)
        return (struct quotient){ limit, 0 };
    for (int digits = 0; digits < DECIMAL_SCALE; digits += 9) {
        const struct quotient next = divide(q.rest * powers_of_ten[9], divisor);
        q = (struct quotient){ q.value * powers_of_ten[9] + next.value, next.rest };
    }
    return q;
}

struct decimal decimal_div(struct decimal a, struct decimal b)
{
    if (!decimal_is_valid(a) || !decimal_is_valid(b) || b.units == 0)
        return not_valid;
    const magnitude m = magnitude_of(a), divisor = magnitude_of(b);
    const struct quotient q = divisor >> 98 ? divide_bits(m, divisor) : divide_digits(m, divisor);
    if (q.value >= limit)
        return not_valid;
    const magnitude other = divisor - q.rest;
    return signed_of((a.units < 0) != (b.units < 0),
                     round_half_even(q.value, (q.rest > other) - (q.rest < other)));
}

struct decimal decimal_round(struct decimal a, int digits)
{
    if (!decimal_is_valid(a))
        return a;
    const struct parts p = parts_rounded(a, digits);
    return signed_of(a.units < 0,
                     p.whole * ONE + p.behind * (magnitude)powers_of_ten[DECIMAL_SCALE - digits]);
}

/* ---- order ---- */

int decimal_compare(struct decimal a, struct decimal b)
{
    return (a.units > b.units) - (a.units < b.units);
}

int decimal_sign(struct decimal a)
{
    return (a.units > 0) - (a.units < 0);
}

struct decimal decimal_min(struct decimal a, struct decimal b)
{
    if (!decimal_is_valid(a) || !decimal_is_valid(b))
        return not_valid;
    return decimal_compare(a, b) < 0 ? a : b;
}

struct decimal decimal_max(struct decimal a, struct decimal b)
{
    if (!decimal_is_valid(a) || !decimal_is_valid(b))
        return not_valid;
    return decimal_compare(a, b) > 0 ? a : b;
}

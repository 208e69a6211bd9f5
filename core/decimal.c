/* Exact decimal numbers for money, prices and sizes. */
#include "core/decimal.h"

#include <string.h>

typedef unsigned __int128 magnitude;

#define ONE UINT64_C(1000000000000000000) /* 10^18: the units of 1 */

static const magnitude limit = (magnitude)ONE * ONE * 100; /* 10^38: the first that does not fit */
static const struct decimal not_valid = { -((__int128)1 << 126) * 2 };

bool decimal_is_valid(struct decimal d)
{
    return d.units != not_valid.units;
}

/* Units of either sign; of what is not valid the magnitude is 2^127. */
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

/* One up when what was cut off is more than a half, or a half behind an odd digit. `half` says how the rest
 * compares with a half. */
static magnitude round_half_even(magnitude cut, int half)
{
    return cut + (half > 0 || (half == 0 && (cut & 1)));
}

/* Up to 10^18. */
static uint64_t power_of_ten(int exponent)
{
    uint64_t power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* ---- text ---- */

struct reader {
    magnitude units;
    int half; /* what was cut off, against half a unit */
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
        r->half += r->half == 0; /* beyond the half: a little more than it was */
        r->cut = true;
    }
    r->any |= digit > 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The exponent behind the number, or false. Beyond a billion it makes no difference. */
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

/* Where the digits before and behind the point start and end, as JSON has them. */
static bool read_shape(const char *text, size_t *whole, size_t *fraction, int64_t *exponent)
{
    *whole = strspn(text, "0123456789");
    if (*whole == 0 || (*whole > 1 && *text == '0'))
        return false;
    text += *whole;
    *fraction = 0;
    if (*text == '.') {
        *fraction = strspn(text + 1, "0123456789");
        if (*fraction == 0)
            return false;
        text += 1 + *fraction;
    }
    return read_exponent(text, exponent);
}

enum decimal_read decimal_parse(const char *text, struct decimal *out)
{
    *out = not_valid;
    bool negative = *text == '-';
    text += negative;
    size_t whole, fraction;
    int64_t exponent;
    if (!read_shape(text, &whole, &fraction, &exponent))
        return DECIMAL_NOT_A_NUMBER;

    if (exponent == 0 && whole + fraction <= DECIMAL_SCALE) { /* as most are: no digit can be too many */
        uint64_t units = 0;
        for (size_t i = 0; i < whole + fraction; i++)
            units = units * 10 + (unsigned)(text[i + (i >= whole)] - '0');
        *out = signed_of(negative, (magnitude)units * power_of_ten(DECIMAL_SCALE - (int)fraction));
        return DECIMAL_EXACT;
    }

    struct reader r = { .half = -1 };
    int64_t place = (int64_t)whole + exponent;
    for (size_t i = 0; i < whole; i++)
        take_digit(&r, text[i] - '0', --place);
    for (size_t i = 0; i < fraction; i++)
        take_digit(&r, text[whole + 1 + i] - '0', --place);
    while (r.any && !r.too_large && place > -DECIMAL_SCALE) /* the zeros that are not written */
        take_digit(&r, 0, --place);

    *out = r.too_large ? not_valid : signed_of(negative, round_half_even(r.units, r.half));
    return !decimal_is_valid(*out) ? DECIMAL_TOO_LARGE : r.cut ? DECIMAL_ROUNDED : DECIMAL_EXACT;
}

/* Writes backwards from the end, with `digits` behind the point; returns the start. The digits are taken from
 * words of 64 bits, 18 at a time: to divide 128 bits is slow. */
static char *put_backwards(char *end, magnitude m, int digits)
{
    int place = 0;
    do {
        bool more = m > UINT64_MAX;
        uint64_t part = (uint64_t)(more ? m % ONE : m);
        m = more ? m / ONE : 0;
        for (int i = 0; more ? i < DECIMAL_SCALE : part > 0 || place <= digits; i++, part /= 10) {
            if (place++ == digits && digits > 0)
                *--end = '.';
            *--end = (char)('0' + (int)(part % 10));
        }
    } while (m > 0);
    return end;
}

static void put(struct decimal d, magnitude m, int digits, char out[DECIMAL_TEXT_SIZE])
{
    char text[DECIMAL_TEXT_SIZE], *end = text + sizeof text;
    *--end = '\0';
    char *start = put_backwards(end, m, digits);
    if (d.units < 0)
        *--start = '-';
    memcpy(out, start, (size_t)(text + sizeof text - start));
}

void decimal_text(struct decimal d, char out[DECIMAL_TEXT_SIZE])
{
    if (!decimal_is_valid(d)) {
        memcpy(out, "null", 5);
        return;
    }
    magnitude m = magnitude_of(d);
    uint64_t fraction = (uint64_t)(m % ONE);
    int digits = fraction ? DECIMAL_SCALE : 0;
    for (; digits > 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    put(d, m / power_of_ten(DECIMAL_SCALE - digits), digits, out);
}

void decimal_fixed(struct decimal d, int digits, char out[DECIMAL_TEXT_SIZE])
{
    d = decimal_round(d, digits);
    if (!decimal_is_valid(d)) {
        memcpy(out, "null", 5);
        return;
    }
    put(d, magnitude_of(d) / power_of_ten(DECIMAL_SCALE - digits), digits, out);
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
    for (int i = 3; i >= 0; i--) { /* the product has the scale twice: divided by 10^18, word by word */
        magnitude part = (magnitude)rest << 64 | words[i];
        words[i] = (uint64_t)(part / ONE);
        rest = (uint64_t)(part % ONE);
    }
    if (words[3] || words[2])
        return not_valid;
    magnitude cut = (magnitude)words[1] << 64 | words[0];
    if (cut >= limit)
        return not_valid;
    return signed_of((a.units < 0) != (b.units < 0),
                     round_half_even(cut, (rest > ONE / 2) - (rest < ONE / 2)));
}

/* |a| times 10^18 by |b|: by the processor where it fits 128 bits, as small amounts do, or where b is a whole
 * number, whose own 10^18 is the same; else bit by bit as on paper, which is rare and easy to see to be
 * right. The rest stays below the divisor, which is below 2^127, so doubling it fits. */
struct decimal decimal_div(struct decimal a, struct decimal b)
{
    if (!decimal_is_valid(a) || !decimal_is_valid(b) || b.units == 0)
        return not_valid;
    uint64_t words[4];
    multiply(magnitude_of(a), ONE, words);
    magnitude divisor = magnitude_of(b), quotient = 0, rest = 0;
    const bool fits = !words[2] && !words[3], whole = !fits && divisor % ONE == 0;
    if (fits || whole) {
        const magnitude dividend = whole ? magnitude_of(a) : (magnitude)words[1] << 64 | words[0];
        if (whole)
            divisor /= ONE;
        quotient = dividend / divisor;
        rest = dividend % divisor;
    }
    for (int bit = fits || whole ? -1 : 191; bit >= 0; bit--) { /* 127 bits times 60 */
        rest = rest << 1 | (words[bit / 64] >> (bit % 64) & 1);
        if (quotient >= limit)
            return not_valid;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    if (quotient >= limit)
        return not_valid;
    magnitude other = divisor - rest;
    return signed_of((a.units < 0) != (b.units < 0),
                     round_half_even(quotient, (rest > other) - (rest < other)));
}

struct decimal decimal_round(struct decimal a, int digits)
{
    if (!decimal_is_valid(a))
        return a;
    magnitude step = power_of_ten(DECIMAL_SCALE - digits), m = magnitude_of(a);
    magnitude cut = m / step, rest = m % step, other = step - rest;
    return signed_of(a.units < 0, round_half_even(cut, (rest > other) - (rest < other)) * step);
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

/* Exact decimal numbers, against schoolbook arithmetic on arrays of digits. */
#include <math.h>

#include "core/base/decimal.h"
#include "tests/core/unit.h"

static struct arena arena;
static uint64_t state = 20260604;

static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % below;
}

static struct decimal read_exact(const char *text)
{
    struct decimal d;
    ck_assert_msg(decimal_parse(text, &d) == DECIMAL_EXACT, "%s", text);
    return d;
}

static const char *text_of(struct decimal d)
{
    static char texts[4][DECIMAL_TEXT_SIZE];
    static int next;
    char *out = texts[next++ % 4];
    decimal_text(d, out);
    return out;
}

START_TEST(numbers_are_read_and_written_as_in_the_data_file)
{
    static const char *const results[] = { "exact", "rounded", "too_large", "not_a_number" };
    char *text = unit_file(&arena, "decimal.tsv");
    int cases = 0;
    for (char *line; (line = unit_line(&text)); cases++) {
        char *column[3];
        unit_columns(line, column, 3);
        struct decimal d;
        const char *result = results[decimal_parse(column[0], &d)];
        ck_assert_msg(strcmp(result, column[1]) == 0, "%s is %s", column[0], result);
        ck_assert_msg(strcmp(text_of(d), column[2]) == 0, "%s is %s", column[0], text_of(d));
        ck_assert_int_eq(decimal_is_valid(d), strcmp(column[2], "null") != 0);
    }
    ck_assert_int_gt(cases, 80);
    arena_release(&arena);
}
END_TEST

START_TEST(a_number_of_any_length_is_read)
{
    char *text = arena_alloc(&arena, 200100);
    struct decimal d;
    memset(text, '0', 200000);
    text[0] = '1';
    strcpy(text + 200000, "e-199999");
    ck_assert_int_eq(decimal_parse(text, &d), DECIMAL_EXACT);
    ck_assert_str_eq(text_of(d), "1");
    text[0] = '0';
    text[1] = '.';
    text[199999] = '1';
    strcpy(text + 200000, "e+199998");
    ck_assert_int_eq(decimal_parse(text, &d), DECIMAL_EXACT);
    ck_assert_str_eq(text_of(d), "1");
    arena_release(&arena);
}
END_TEST

/* ---- arrays of digits, least significant first: slow and simple ---- */

enum { ROW = 120 };
struct row {
    int digit[ROW];
};

/* The units of a canonical text. */
static struct row row_of(const char *text)
{
    struct row r = { 0 };
    text += *text == '-';
    const char *point = strchr(text, '.');
    int fraction = point ? (int)strlen(point + 1) : 0, at = DECIMAL_SCALE - fraction;
    for (size_t i = strlen(text); i-- > 0;)
        if (text[i] != '.')
            r.digit[at++] = text[i] - '0';
    return r;
}

/* For operands of up to half the length. */
static struct row row_times(const struct row *a, const struct row *b)
{
    struct row r = { 0 };
    for (int i = 0; i < ROW / 2; i++)
        for (int j = 0; j < ROW / 2; j++)
            r.digit[i + j] += a->digit[i] * b->digit[j];
    for (int i = 0; i + 1 < ROW; i++) {
        r.digit[i + 1] += r.digit[i] / 10;
        r.digit[i] %= 10;
    }
    return r;
}

static int row_compare(const struct row *a, const struct row *b)
{
    for (int i = ROW; i-- > 0;)
        if (a->digit[i] != b->digit[i])
            return a->digit[i] < b->digit[i] ? -1 : 1;
    return 0;
}

static struct row row_add(const struct row *a, const struct row *b)
{
    struct row r = { 0 };
    for (int i = 0, carry = 0; i < ROW; i++) {
        int sum = a->digit[i] + b->digit[i] + carry;
        r.digit[i] = sum % 10;
        carry = sum / 10;
    }
    return r;
}

/* The larger first. */
static struct row row_sub(const struct row *a, const struct row *b)
{
    struct row r = { 0 };
    for (int i = 0, borrow = 0; i < ROW; i++) {
        int rest = a->digit[i] - b->digit[i] - borrow;
        borrow = rest < 0;
        r.digit[i] = rest + 10 * borrow;
    }
    return r;
}

static struct row row_apart(const struct row *a, const struct row *b)
{
    return row_compare(a, b) >= 0 ? row_sub(a, b) : row_sub(b, a);
}

static struct row row_shift(const struct row *a, int places)
{
    struct row r = { 0 };
    for (int i = 0; i + places < ROW; i++)
        r.digit[i + places] = a->digit[i];
    return r;
}

static bool row_fits(const struct row *a)
{
    for (int i = 38; i < ROW; i++)
        if (a->digit[i])
            return false;
    return true;
}

/* True when `units` is the quotient of the rows, rounded half to even: exact is within half a divisor of it.
 */
static bool row_is_quotient(const struct row *units, const struct row *dividend, const struct row *divisor)
{
    struct row back = row_times(units, divisor);
    struct row apart = row_apart(&back, dividend);
    struct row twice = row_add(&apart, &apart);
    int half = row_compare(&twice, divisor);
    return half < 0 || (half == 0 && units->digit[0] % 2 == 0);
}

/* The quotient is at least 10^38 - 1/2 units: it does not fit. */
static bool row_is_too_large(const struct row *dividend, const struct row *divisor)
{
    struct row one = { { 1 } };
    struct row limit = row_shift(&one, 38);
    limit = row_add(&limit, &limit);
    limit = row_sub(&limit, &one);
    struct row bound = row_times(&limit, divisor), twice = row_add(dividend, dividend);
    return row_compare(&twice, &bound) >= 0;
}

/* A decimal with up to 20 digits before and 18 behind the point; often few, often nines and zeros. */
static struct decimal draw_decimal(void)
{
    char text[48], *p = text;
    if (draw(2))
        *p++ = '-';
    uint64_t whole = draw(3) ? draw(7) : draw(21), fraction = draw(3) ? draw(9) : draw(19), style = draw(8);
    *p++ = whole ? (char)('1' + draw(9)) : '0';
    for (uint64_t i = 1; i < whole; i++)
        *p++ = style == 0 ? '9' : style == 1 ? '0' : (char)('0' + draw(10));
    if (fraction)
        *p++ = '.';
    for (uint64_t i = 0; i < fraction; i++)
        *p++ = style == 0 ? '9' : style == 1 ? (i + 1 < fraction ? '0' : '5') : (char)('0' + draw(10));
    *p = '\0';
    return read_exact(text);
}

START_TEST(a_written_number_reads_back_the_same)
{
    for (int i = 0; i < 200000; i++) {
        struct decimal d = draw_decimal(), back;
        HOLDS(decimal_parse(text_of(d), &back) == DECIMAL_EXACT);
        HOLDS(decimal_compare(d, back) == 0);
    }
}
END_TEST

START_TEST(sums_and_differences_are_exact)
{
    for (int i = 0; i < 100000; i++) {
        struct decimal a = draw_decimal(), b = draw_decimal();
        struct row x = row_of(text_of(a)), y = row_of(text_of(b));
        bool same = decimal_sign(a) * decimal_sign(b) >= 0;
        struct row sum = same ? row_add(&x, &y) : row_apart(&x, &y);
        struct row difference = same ? row_apart(&x, &y) : row_add(&x, &y);
        struct decimal plus = decimal_add(a, b), minus = decimal_sub(a, b);
        HOLDS(decimal_is_valid(plus) == row_fits(&sum));
        HOLDS(decimal_is_valid(minus) == row_fits(&difference));
        if (decimal_is_valid(plus)) {
            struct row got = row_of(text_of(plus));
            HOLDS(row_compare(&got, &sum) == 0);
            HOLDS(decimal_compare(decimal_sub(plus, b), a) == 0);
        }
        if (decimal_is_valid(minus)) {
            struct row got = row_of(text_of(minus));
            HOLDS(row_compare(&got, &difference) == 0);
            HOLDS(decimal_sign(minus) == decimal_compare(a, b));
        }
    }
}
END_TEST

static bool sign_is_right(struct decimal result, struct decimal a, struct decimal b)
{
    return decimal_sign(result) == 0 || decimal_sign(result) == decimal_sign(a) * decimal_sign(b);
}

START_TEST(products_are_rounded_half_to_even)
{
    struct row one = { { 1 } };
    struct row scale = row_shift(&one, DECIMAL_SCALE);
    int valid = 0;
    for (int i = 0; i < 30000; i++) {
        struct decimal a = draw_decimal(), b = draw_decimal(), product = decimal_mul(a, b);
        struct row x = row_of(text_of(a)), y = row_of(text_of(b)), exact = row_times(&x, &y);
        HOLDS(decimal_is_valid(product) == !row_is_too_large(&exact, &scale));
        if (!decimal_is_valid(product))
            continue;
        struct row got = row_of(text_of(product));
        HOLDS(row_is_quotient(&got, &exact, &scale));
        HOLDS(sign_is_right(product, a, b));
        HOLDS(decimal_compare(product, decimal_mul(b, a)) == 0);
        valid++;
    }
    ck_assert_int_gt(valid, 10000);
}
END_TEST

START_TEST(quotients_are_rounded_half_to_even)
{
    int valid = 0;
    for (int i = 0; i < 30000; i++) {
        struct decimal a = draw_decimal(), b = draw_decimal(), quotient = decimal_div(a, b);
        if (decimal_sign(b) == 0) {
            HOLDS(!decimal_is_valid(quotient));
            continue;
        }
        struct row x = row_of(text_of(a)), y = row_of(text_of(b));
        x = row_shift(&x, DECIMAL_SCALE);
        HOLDS(decimal_is_valid(quotient) == !row_is_too_large(&x, &y));
        if (!decimal_is_valid(quotient))
            continue;
        struct row got = row_of(text_of(quotient));
        HOLDS(row_is_quotient(&got, &x, &y));
        HOLDS(sign_is_right(quotient, a, b));
        valid++;
    }
    ck_assert_int_gt(valid, 10000);
}
END_TEST

START_TEST(results_are_near_those_of_long_double)
{
    for (int i = 0; i < 100000; i++) {
        struct decimal a = draw_decimal(), b = draw_decimal();
        long double x = strtold(text_of(a), NULL), y = strtold(text_of(b), NULL);
        struct decimal product = decimal_mul(a, b), quotient = decimal_div(a, b);
        if (decimal_is_valid(product))
            HOLDS(fabsl(strtold(text_of(product), NULL) - x * y) <= 1e-15L * fabsl(x * y) + 1e-18L);
        if (decimal_is_valid(quotient))
            HOLDS(fabsl(strtold(text_of(quotient), NULL) - x / y) <= 1e-15L * fabsl(x / y) + 1e-18L);
        HOLDS(decimal_compare(a, b) == -decimal_compare(b, a));
        HOLDS(x == y || decimal_compare(a, b) == (x > y) - (x < y));
    }
}
END_TEST

static const struct {
    const char *a;
    char op;
    const char *b, *result;
} edges[] = {
    { "0.0000000005", '*', "0.000000001", "0" },                    /* half, even below */
    { "0.0000000015", '*', "0.000000001", "0.000000000000000002" }, /* half, odd below */
    { "-0.0000000015", '*', "0.000000001", "-0.000000000000000002" },
    { "0.0000000025", '*', "-0.000000001", "-0.000000000000000002" },
    { "99999999999999999999.999999999999999999", '*', "1", "99999999999999999999.999999999999999999" },
    { "99999999999999999999.999999999999999999", '*', "1.000000000000000001", "null" },
    { "10000000000", '*', "10000000000", "null" },
    { "10000000000", '*', "-10000000000", "null" },
    { "10000000000", '*', "9999999999.999999999", "99999999999999999990" },
    { "99999999999999999999", '*', "99999999999999999999", "null" },
    { "0", '*', "-5", "0" },
    { "1", '/', "3", "0.333333333333333333" },
    { "2", '/', "3", "0.666666666666666667" },
    { "-2", '/', "3", "-0.666666666666666667" },
    { "1", '/', "0", "null" },
    { "0", '/', "0", "null" },
    { "0", '/', "-7", "0" },
    { "0.000000000000000001", '/', "2", "0" },
    { "0.000000000000000003", '/', "2", "0.000000000000000002" },
    { "0.000000000000000005", '/', "-2", "-0.000000000000000002" },
    { "1", '/', "0.000000000000000001", "1000000000000000000" },
    { "99", '/', "0.000000000000000001", "99000000000000000000" },
    { "100", '/', "0.000000000000000001", "null" },
    { "99999999999999999999.999999999999999999", '/', "0.000000000000000001", "null" },
    { "99999999999999999999.999999999999999999", '/', "99999999999999999999.999999999999999999", "1" },
    { "99999999999999999999.999999999999999999", '+', "0.000000000000000001", "null" },
    { "99999999999999999999", '+', "99999999999999999999", "null" },
    { "-99999999999999999999", '-', "99999999999999999999", "null" },
    { "99999999999999999999", '-', "99999999999999999999", "0" },
    { "0.1", '+', "0.2", "0.3" },
    { "65200.12345678", '-', "65200.12345679", "-0.00000001" },
};

static struct decimal apply(struct decimal a, char op, struct decimal b)
{
    return op == '+'   ? decimal_add(a, b)
           : op == '-' ? decimal_sub(a, b)
           : op == '*' ? decimal_mul(a, b)
                       : decimal_div(a, b);
}

START_TEST(edge_cases_have_the_listed_results)
{
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        struct decimal r = apply(read_exact(edges[i].a), edges[i].op, read_exact(edges[i].b));
        ck_assert_msg(strcmp(text_of(r), edges[i].result) == 0, "%s %c %s is %s", edges[i].a, edges[i].op,
                      edges[i].b, text_of(r));
    }
}
END_TEST

START_TEST(an_invalid_operand_gives_an_invalid_result)
{
    struct decimal bad, one = decimal_from_int(1);
    ck_assert_int_eq(decimal_parse("1e20", &bad), DECIMAL_TOO_LARGE);
    for (const char *op = "+-*/"; *op; op++) {
        ck_assert(!decimal_is_valid(apply(bad, *op, one)));
        ck_assert(!decimal_is_valid(apply(one, *op, bad)));
        ck_assert(!decimal_is_valid(apply(bad, *op, bad)));
        ck_assert(!decimal_is_valid(apply(bad, *op, decimal_from_int(0))));
    }
    ck_assert(!decimal_is_valid(decimal_neg(bad)));
    ck_assert(!decimal_is_valid(decimal_round(bad, 2)));
    ck_assert(!decimal_is_valid(decimal_min(bad, one)) && !decimal_is_valid(decimal_min(one, bad)));
    ck_assert(!decimal_is_valid(decimal_max(bad, one)) && !decimal_is_valid(decimal_max(one, bad)));
    char out[DECIMAL_TEXT_SIZE];
    decimal_fixed(bad, 2, out);
    ck_assert_str_eq(out, "null");
}
END_TEST

static const struct {
    const char *number;
    int digits;
    const char *fixed;
} roundings[] = {
    { "28.4", 2, "28.40" },
    { "0.005", 2, "0.00" },
    { "0.015", 2, "0.02" },
    { "-0.005", 2, "0.00" },
    { "-0.0051", 2, "-0.01" },
    { "2.5", 0, "2" },
    { "3.5", 0, "4" },
    { "-9.5", 0, "-10" },
    { "0", 2, "0.00" },
    { "1e-18", 18, "0.000000000000000001" },
    { "1234567.895", 2, "1234567.90" },
    { "99999999999999999999.9", 0, "null" },
    { "99999999999999999999.4", 0, "99999999999999999999" },
};

START_TEST(fixed_digits_are_rounded_half_to_even)
{
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
        char out[DECIMAL_TEXT_SIZE];
        decimal_fixed(read_exact(roundings[i].number), roundings[i].digits, out);
        ck_assert_msg(strcmp(out, roundings[i].fixed) == 0, "%s is %s", roundings[i].number, out);
    }
}
END_TEST

START_TEST(any_number_of_digits_is_rounded_half_to_even)
{
    struct row one = { { 1 } };
    for (int i = 0; i < 30000; i++) {
        struct decimal d = draw_decimal();
        int digits = (int)draw(DECIMAL_SCALE + 1);
        struct decimal rounded = decimal_round(d, digits);
        char fixed[DECIMAL_TEXT_SIZE];
        decimal_fixed(d, digits, fixed);
        if (!decimal_is_valid(rounded)) { /* all nines before the point */
            ck_assert_str_eq(fixed, "null");
            continue;
        }
        struct row exact = row_of(text_of(d)), got = row_of(text_of(rounded)), steps = { 0 };
        struct row step = row_shift(&one, DECIMAL_SCALE - digits);
        for (int k = 0; k < ROW; k++) {
            if (k < DECIMAL_SCALE - digits)
                HOLDS(got.digit[k] == 0);
            else
                steps.digit[k - DECIMAL_SCALE + digits] = got.digit[k];
        }
        HOLDS(row_is_quotient(&steps, &exact, &step));
        HOLDS(decimal_sign(rounded) == 0 || decimal_sign(rounded) == decimal_sign(d));
        const char *point = strchr(fixed, '.');
        HOLDS((point ? (int)strlen(point + 1) : 0) == digits);
        HOLDS((fixed[0] == '-') == (decimal_sign(rounded) < 0));
        struct row shown = row_of(fixed);
        HOLDS(row_compare(&shown, &got) == 0);
    }
}
END_TEST

START_TEST(multiplying_by_a_count_is_the_product)
{
    for (int i = 0; i < 30000; i++) {
        struct decimal d = draw_decimal();
        int64_t factor = (int64_t)draw(UINT64_C(1) << (1 + draw(30)));
        if (draw(2))
            factor = -factor;
        struct decimal times = decimal_times(d, factor), product = decimal_mul(d, decimal_from_int(factor));
        HOLDS(decimal_is_valid(times) == decimal_is_valid(product));
        HOLDS(decimal_compare(times, product) == 0);
    }
    struct decimal bad;
    ck_assert_int_eq(decimal_parse("1e20", &bad), DECIMAL_TOO_LARGE);
    ck_assert(!decimal_is_valid(decimal_times(bad, 0)));
    ck_assert(!decimal_is_valid(decimal_times(read_exact("99999999999999999999"), INT64_MIN)));
}
END_TEST

START_TEST(integers_convert_exactly)
{
    ck_assert_str_eq(text_of(decimal_from_int(INT64_MAX)), "9223372036854775807");
    ck_assert_str_eq(text_of(decimal_from_int(INT64_MIN)), "-9223372036854775808");
    ck_assert_str_eq(text_of(decimal_from_int(0)), "0");
}
END_TEST

UNIT_MAIN("decimal", numbers_are_read_and_written_as_in_the_data_file, a_number_of_any_length_is_read,
          a_written_number_reads_back_the_same, sums_and_differences_are_exact,
          products_are_rounded_half_to_even, quotients_are_rounded_half_to_even,
          results_are_near_those_of_long_double, edge_cases_have_the_listed_results,
          an_invalid_operand_gives_an_invalid_result, fixed_digits_are_rounded_half_to_even,
          any_number_of_digits_is_rounded_half_to_even, multiplying_by_a_count_is_the_product,
          integers_convert_exactly)

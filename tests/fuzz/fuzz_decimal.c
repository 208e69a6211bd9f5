/* Fuzzes decimal numbers: an accepted number reads back the same once written, and no sum of two wraps. */
#include "core/base/decimal.h"
#include "tests/fuzz/fuzz.h"

static void check_text(struct decimal d)
{
    char text[DECIMAL_TEXT_SIZE];
    struct decimal back;
    decimal_text(d, text);
    HOLDS(strlen(text) < DECIMAL_TEXT_SIZE);
    HOLDS(decimal_parse(text, &back) == DECIMAL_EXACT && decimal_compare(d, back) == 0);
    for (int digits = 0; digits <= DECIMAL_SCALE; digits++) {
        decimal_fixed(d, digits, text);
        HOLDS(strlen(text) < DECIMAL_TEXT_SIZE);
    }
}

static void check_result(struct decimal d)
{
    if (decimal_is_valid(d))
        check_text(d);
}

static void check_pair(struct decimal a, struct decimal b)
{
    struct decimal sum = decimal_add(a, b), product = decimal_mul(a, b), quotient = decimal_div(a, b);
    check_result(sum);
    check_result(product);
    check_result(quotient);
    check_result(decimal_sub(a, b));
    if (decimal_is_valid(sum))
        HOLDS(decimal_compare(decimal_sub(sum, b), a) == 0);
    if (decimal_is_valid(product) && decimal_sign(product) != 0)
        HOLDS(decimal_sign(product) == decimal_sign(a) * decimal_sign(b));
    if (decimal_is_valid(quotient) && decimal_sign(quotient) != 0)
        HOLDS(decimal_sign(quotient) == decimal_sign(a) * decimal_sign(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    char *first = arena_copy(&arena, data, size), *second = strchr(first, ' ');
    if (second)
        *second++ = '\0';
    struct decimal a, b;
    enum decimal_read read = decimal_parse(first, &a);
    HOLDS(decimal_is_valid(a) == (read == DECIMAL_EXACT || read == DECIMAL_ROUNDED));
    if (decimal_is_valid(a)) {
        check_text(a);
        check_pair(a, a);
        if (second && decimal_parse(second, &b) <= DECIMAL_ROUNDED) {
            check_pair(a, b);
            check_pair(b, a);
        }
    }
    arena_release(&arena);
    return 0;
}

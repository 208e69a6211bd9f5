/* A number with its original text. */
#include "core/ledger/quantity.h"

#include <stdlib.h>
#include <string.h>

static bool has_exponent(const char *lexeme)
{
    while (*lexeme && (*lexeme | 0x20) != 'e')
        lexeme++;
    return *lexeme;
}

enum decimal_read quantity_read(const char *lexeme, struct quantity *out)
{
    enum decimal_read read = decimal_parse(lexeme, &out->value);
    out->given = read == DECIMAL_EXACT || read == DECIMAL_ROUNDED;
    out->lexeme = out->given ? lexeme : NULL;
    if (read == DECIMAL_EXACT && has_exponent(lexeme))
        out->lexeme = NULL;
    else if (read == DECIMAL_EXACT && *lexeme == '-' && decimal_sign(out->value) == 0)
        out->lexeme++;
    return read;
}

/* "-1.25e-3" becomes "-0.00125". */
static const char *written_out(struct arena *arena, const char *lexeme)
{
    struct buf digits = { .arena = arena }, out = digits;
    const char *e = strpbrk(lexeme, "eE"), *point = memchr(lexeme, '.', (size_t)(e - lexeme));
    const char *first = lexeme + (*lexeme == '-');
    long whole = (point ? point : e) - first + strtol(e + 1, NULL, 10);
    for (; whole <= 0; whole++)
        buf_char(&digits, '0');
    buf_add(&digits, first, (size_t)((point ? point : e) - first));
    if (point)
        buf_add(&digits, point + 1, (size_t)(e - point - 1));
    while ((size_t)whole > digits.len)
        buf_char(&digits, '0');
    size_t from = 0; /* skips a leading zero: "0.5e1" is "05" now */
    while (from + 1 < (size_t)whole && digits.data[from] == '0')
        from++;
    if (*lexeme == '-')
        buf_char(&out, '-');
    buf_add(&out, digits.data + from, (size_t)whole - from);
    if ((size_t)whole < digits.len) {
        buf_char(&out, '.');
        buf_add(&out, digits.data + whole, digits.len - (size_t)whole);
    }
    return buf_string(&out);
}

enum decimal_read quantity_take(struct arena *arena, const char *lexeme, struct quantity *out)
{
    enum decimal_read read = quantity_read(lexeme, out);
    if (read == DECIMAL_ROUNDED && has_exponent(lexeme))
        out->lexeme = written_out(arena, lexeme);
    return read;
}

struct quantity quantity_derived(struct decimal value)
{
    return (struct quantity){ .value = value, .given = true };
}

void quantity_json(struct buf *out, struct quantity q)
{
    char text[DECIMAL_TEXT_SIZE] = "null";
    if (q.given && !q.lexeme)
        decimal_text(q.value, text);
    buf_text(out, q.given && q.lexeme ? q.lexeme : text);
}

/* Texts of JSON, unescaped where they stand. */
#include "server/json/unescape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The four hexadecimal digits, or -1. */
static int32_t hex4(const char *at)
{
    static const char digits[] = "0123456789abcdef";
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit)
            return -1;
        value = value << 4 | (int32_t)(digit - digits);
    }
    return value;
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(0xff00 >> (more + 1) | c >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
    return to;
}

/* Behind "\u": the character, of both halves of a pair, or -1. */
static int32_t take_unit(char **from)
{
    int32_t unit = hex4(*from);
    if (unit < 0)
        return -1;
    *from += 4;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    int32_t low = (*from)[0] == '\\' && (*from)[1] == 'u' ? hex4(*from + 2) : -1;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return -1;
    *from += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/* Behind the backslash: the character that it stands for, or -1; never NUL, which would end the text. */
static int32_t take_escape(char **from)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char c = *(*from)++;
    if (c == 'u') {
        int32_t unit = take_unit(from);
        return unit == 0 ? -1 : unit;
    }
    const char *name = c ? strchr(names, c) : NULL;
    return name ? means[name - names] : -1;
}

const char *unescape(char *quote, char **behind)
{
    if (*quote != '"')
        return NULL;
    char *start = quote + 1, *end = strchrnul(start, '"');
    char *from = memchr(start, '\\', (size_t)(end - start));
    if (!from)
        from = end; /* most texts have no escape, and stay where they are */
    char *to = from;
    while (*from && *from != '"') {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        int32_t c = take_escape(&from);
        if (c < 0)
            return NULL;
        to = put_utf8(to, c);
    }
    if (*from != '"')
        return NULL;
    *behind = from + 1;
    *to = '\0';
    return start;
}

/* A growing text in an arena, and the JSON values appended to it. */
#include "core/base/buf.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_grow(struct buf *b, size_t more)
{
    size_t cap = b->cap ? b->cap * 2 : 512;
    while (cap - b->len < more)
        cap *= 2;
    char *data = arena_alloc(b->arena, cap);
    if (b->len)
        memcpy(data, b->data, b->len);
    b->data = data;
    b->cap = cap;
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[256];
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(small, sizeof small, fmt, again);
    va_end(again);
    if (len < 0)
        abort();
    if ((size_t)len < sizeof small) {
        buf_add(b, small, (size_t)len);
    } else {
        vsnprintf(buf_room(b, (size_t)len + 1), (size_t)len + 1, fmt, args);
        b->len += (size_t)len;
    }
    va_end(args);
}

void buf_int(struct buf *b, int64_t value)
{
    char digits[20], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    buf_add(b, at, (size_t)(digits + sizeof digits - at));
}

const char *buf_string(struct buf *b)
{
    *buf_room(b, 1) = '\0';
    return b->data;
}

/* How each byte is written in JSON: 0 unchanged, 'u' as \u00xx, else this character after a backslash. */
static const char escapes[256] = {
    [0 ... 8] = 'u', ['\t'] = 't',      ['\n'] = 'n', [11 ... 12] = 'u',
    ['\r'] = 'r',    [14 ... 31] = 'u', ['"'] = '"',  ['\\'] = '\\',
};

/* Sets the top bit of each byte that is below 0x20, a quote or a backslash. Only the first hit is
 * reliable. */
static uint64_t special_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    const uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
    return ((word - ones * 0x20) | (quote - ones) | (backslash - ones)) & ~word & tops;
}

/* Counts the leading bytes that need no escape, eight at a time because most text has few that do. */
size_t buf_json_plain(const char *text, size_t len)
{
    size_t i = 0;
    for (uint64_t word; len - i >= sizeof word; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        uint64_t special = special_bytes(le64toh(word));
        if (special)
            return i + (size_t)__builtin_ctzll(special) / 8;
    }
    while (i < len && !escapes[(unsigned char)text[i]])
        i++;
    return i;
}

void buf_json_text(struct buf *b, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    buf_char(b, '"');
    for (const char *end = text + len;;) {
        size_t plain = buf_json_plain(text, (size_t)(end - text));
        buf_add(b, text, plain);
        text += plain;
        if (text == end)
            break;
        unsigned char c = (unsigned char)*text++;
        const char escaped[] = { '\\', escapes[c], '0', '0', hex[c >> 4], hex[c & 15] };
        buf_add(b, escaped, escapes[c] == 'u' ? sizeof escaped : 2);
    }
    buf_char(b, '"');
}

void buf_json_string(struct buf *b, const char *text)
{
    if (text)
        buf_json_text(b, text, strlen(text));
    else
        buf_text(b, "null");
}

void buf_json_key(struct buf *b, const char *name)
{
    const size_t len = strlen(name);
    const bool first = b->len == 0 || b->data[b->len - 1] == '{' || b->data[b->len - 1] == '[';
    char *to = buf_room(b, len + 4);
    *to = ',';
    to += !first;
    *to++ = '"';
    memcpy(to, name, len);
    memcpy(to + len, "\":", 2);
    b->len += len + 3 + !first;
}

void buf_json_bool(struct buf *b, bool value)
{
    buf_text(b, value ? "true" : "false");
}

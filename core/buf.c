/* A growing piece of text in an arena, and the JSON values appended to it. */
#include "core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *buf_room(struct buf *b, size_t more)
{
    if (b->cap - b->len < more) {
        size_t cap = b->cap ? b->cap * 2 : 512;
        while (cap - b->len < more)
            cap *= 2;
        char *data = arena_alloc(b->arena, cap);
        if (b->len)
            memcpy(data, b->data, b->len);
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
    if (!len)
        return;
    memcpy(buf_room(b, len), bytes, len);
    b->len += len;
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

const char *buf_string(struct buf *b)
{
    *buf_room(b, 1) = '\0';
    return b->data;
}

/* Without a branch in the loop, so that the compiler can look at many bytes at once. */
static bool is_plain(const char *text, size_t len)
{
    bool special = false;
    for (size_t i = 0; i < len; i++)
        special |= ((unsigned char)text[i] < 0x20) | (text[i] == '"') | (text[i] == '\\');
    return !special;
}

void buf_json_text(struct buf *b, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    if (is_plain(text, len)) {
        char *plain = buf_room(b, len + 2);
        plain[0] = plain[len + 1] = '"';
        if (len)
            memcpy(plain + 1, text, len);
        b->len += len + 2;
        return;
    }
    char *to = buf_room(b, len * 6 + 2); /* the worst case, so that the loop needs no checks */
    char *p = to;
    *p++ = '"';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            *p++ = (char)c;
            continue;
        }
        *p++ = '\\';
        switch (c) {
        case '"':
        case '\\':
            *p++ = (char)c;
            break;
        case '\n':
            *p++ = 'n';
            break;
        case '\t':
            *p++ = 't';
            break;
        case '\r':
            *p++ = 'r';
            break;
        default:
            memcpy(p, "u00", 3);
            p[3] = hex[c >> 4];
            p[4] = hex[c & 15];
            p += 5;
        }
    }
    *p++ = '"';
    b->len += (size_t)(p - to);
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
    if (b->len && b->data[b->len - 1] != '{' && b->data[b->len - 1] != '[')
        buf_char(b, ',');
    buf_char(b, '"');
    buf_text(b, name);
    buf_text(b, "\":");
}

void buf_json_bool(struct buf *b, bool value)
{
    buf_text(b, value ? "true" : "false");
}

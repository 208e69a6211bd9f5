/* A growing text in an arena, and the JSON values appended to it. */
#ifndef DAYBOOK_CORE_BASE_BUF_H
#define DAYBOOK_CORE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"

struct buf {
    struct arena *arena;
    char *data;
    size_t len, cap;
};

void buf_grow(struct buf *b, size_t more);
void buf_fmt(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for `more` bytes and returns where they go. The caller writes them and advances `len`. */
static inline char *buf_room(struct buf *b, size_t more)
{
    if (b->cap - b->len < more)
        buf_grow(b, more);
    return b->data + b->len;
}

static inline void buf_add(struct buf *b, const void *bytes, size_t len)
{
    if (!len)
        return;
    memcpy(buf_room(b, len), bytes, len);
    b->len += len;
}

static inline void buf_text(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

static inline void buf_char(struct buf *b, char c)
{
    *buf_room(b, 1) = c;
    b->len++;
}

/* Appends decimal digits; much faster than buf_fmt. */
void buf_int(struct buf *b, int64_t value);

/* The text so far, NUL-terminated (the NUL is not counted in len). */
const char *buf_string(struct buf *b);

/* JSON values. Text must be valid UTF-8. Only control characters, quotes and backslashes are escaped. */
size_t buf_json_plain(const char *text, size_t len); /* leading bytes that need no escape */
void buf_json_text(struct buf *b, const char *text, size_t len);
void buf_json_string(struct buf *b, const char *text); /* NULL becomes null */
void buf_json_key(struct buf *b, const char *name);    /* "name": with a comma before it if one is needed */
void buf_json_bool(struct buf *b, bool value);

#endif

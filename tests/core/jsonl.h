/* Members of the flat objects in a JSON Lines file, for the unit tests. */
#ifndef DAYBOOK_TESTS_CORE_JSONL_H
#define DAYBOOK_TESTS_CORE_JSONL_H

#include "core/base/buf.h"
#include "tests/core/unit.h"

static inline void jsonl_escape(struct buf *out, const char **at)
{
    static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
    const char c = *(*at)++, *known = strchr(names, c);
    if (c != 'u') {
        buf_char(out, known ? values[known - names] : c);
        return;
    }
    char digits[5] = { 0 };
    memcpy(digits, *at, 4);
    const unsigned long character = strtoul(digits, NULL, 16);
    ck_assert_msg(character < 0x80, "write characters beyond ASCII as they are");
    buf_char(out, (char)character);
    *at += 4;
}

/* The text of a member, or NULL if there is none. */
static inline const char *jsonl_member(struct arena *arena, const char *line, const char *name)
{
    const char *at = strstr(line, arena_fmt(arena, "\"%s\": \"", name));
    if (!at)
        return NULL;
    struct buf out = { .arena = arena };
    for (at += strlen(name) + 5; *at && *at != '"';) {
        if (*at == '\\') {
            at++;
            jsonl_escape(&out, &at);
        } else {
            buf_char(&out, *at++);
        }
    }
    return buf_string(&out);
}

#endif

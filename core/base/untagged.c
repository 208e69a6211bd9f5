/* Untrusted text inside a tagged block of a prompt. */
#include "core/base/untagged.h"

#include <string.h>

#include "core/base/line_text.h"
#include "core/base/utf8.h"

static bool opens_tag(uint32_t c)
{
    return c == '<' || c == 0xff1c || c == 0xfe64; /* full width, small form */
}

void untagged_text(struct buf *out, const char *text)
{
    const char *start = text; /* of the part that is copied unchanged */
    while (*text) {
        const char *at = text;
        if (!opens_tag(utf8_next(&text)))
            continue;
        buf_add(out, start, (size_t)(at - start));
        buf_text(out, "&lt;");
        start = text;
    }
    buf_add(out, start, (size_t)(text - start));
}

void untagged_quoted(struct buf *out, const char *text, size_t max)
{
    struct buf line = { .arena = out->arena };
    line_text(&line, text, max);
    buf_char(out, '"');
    untagged_text(out, buf_string(&line));
    buf_char(out, '"');
}

void untagged_labelled(struct buf *out, const char *label, const char *text, size_t max)
{
    if (!text)
        return;
    buf_text(out, label);
    untagged_quoted(out, text, max);
}

void untagged_name(struct buf *out, const char *name, size_t max)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-+$@=^";
    const size_t len = strlen(name);
    if (len > 0 && len <= max && strspn(name, plain) == len)
        buf_add(out, name, len);
    else
        untagged_quoted(out, name, max);
}

/* Untrusted text as part of one line of a prompt. */
#include "core/base/line_text.h"

#include "core/base/utf8.h"

/* These change the direction of the following text: a person would see another text than the model. */
static bool turns(uint32_t c)
{
    return c == 0x200e || c == 0x200f || c == 0x061c || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* Counts the bytes, at most `max`, that can be copied unchanged: words with single spaces between them. */
static size_t plain_len(const char *text, size_t max)
{
    static const bool plain[256] = { ['!'] = true, ['#' ... '~'] = true };
    const unsigned char *at = (const unsigned char *)text, *start = at;
    while ((size_t)(at - start) < max && (plain[*at] || (*at == ' ' && at > start && plain[at[1]])))
        at++;
    if (at > start && at[-1] == ' ') /* nothing of the next word fits */
        at--;
    return (size_t)(at - start);
}

void line_text(struct buf *out, const char *text, size_t max)
{
    size_t count = 0, fits = out->len; /* where to cut the text if it turns out too long */
    bool gap = false;
    while (*text) {
        const size_t room = count + gap + 1 < max ? max - (count + gap + 1) : 0;
        const size_t plain = plain_len(text, room);
        if (plain > 0) { /* the usual case */
            if (gap)
                buf_char(out, ' ');
            buf_add(out, text, plain);
            text += plain;
            count += gap + plain;
            gap = false;
            fits = out->len;
            continue;
        }
        const char *at = text;
        uint32_t c = utf8_next(&text);
        if (utf8_is_space(c) || utf8_is_control(c) || turns(c)) {
            gap = count > 0;
            continue;
        }
        if (count + gap + 1 > max) {
            out->len = fits;
            buf_text(out, "…");
            return;
        }
        if (gap)
            buf_char(out, ' ');
        count += gap + 1u;
        gap = false;
        if (c < 0x80)
            buf_char(out, c == '"' ? '\'' : (char)c);
        else
            buf_add(out, at, (size_t)(text - at));
        if (count < max)
            fits = out->len;
    }
}

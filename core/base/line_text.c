/* Untrusted text as part of one line of a prompt. */
#include "core/base/line_text.h"

#include "core/base/utf8.h"

/* A person would see another text than the model: these change the direction of the following text, or show
 * nothing. Joiners and the short variation selectors stay, because scripts and emoji need them. */
static const struct {
    uint32_t first, last;
} unseen[] = {
    { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },   { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f },   { 0x200b, 0x200b },   { 0x200e, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x206f },
    { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool is_unseen(uint32_t c)
{
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen && c >= unseen[i].first; i++)
        if (c <= unseen[i].last)
            return true;
    return false;
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
        if (utf8_is_space(c) || utf8_is_control(c)) {
            gap = count > 0;
            continue;
        }
        if (is_unseen(c))
            continue;
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

/* The words of a text, for comparisons that ignore case and punctuation. */
#include "core/base/phrase.h"

#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/utf8.h"

static bool shows_nothing(uint32_t c)
{
    return c == 0xad || c == 0x061c || c == 0xfeff || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f);
}

/* Characters beyond ASCII that separate words. */
static const struct {
    uint32_t first, last;
} parting[] = {
    { 0x80, 0xa9 },     { 0xab, 0xb4 },     { 0xb6, 0xb9 },     { 0xbb, 0xbf },     { 0xd7, 0xd7 },
    { 0xf7, 0xf7 },     { 0x1680, 0x1680 }, { 0x2000, 0x206f }, { 0x20a0, 0x20cf }, { 0x2190, 0x2bff },
    { 0x3000, 0x3004 }, { 0x3008, 0x3020 }, { 0xfe10, 0xfe6f }, { 0xff01, 0xff0f }, { 0xff1a, 0xff20 },
    { 0xff3b, 0xff40 }, { 0xff5b, 0xff65 },
};

static bool is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    for (size_t i = 0; i < sizeof parting / sizeof *parting; i++)
        if (c >= parting[i].first && c <= parting[i].last)
            return false;
    return true;
}

/* Ranges of upper-case letters: lower case is at a fixed distance, or (0) every second character is upper
 * case. */
static const struct {
    uint32_t first, last, distance;
} capitals[] = {
    { 0xc0, 0xd6, 32 },    { 0xd8, 0xde, 32 },     { 0x100, 0x12f, 0 },  { 0x132, 0x137, 0 },
    { 0x139, 0x148, 0 },   { 0x14a, 0x177, 0 },    { 0x179, 0x17e, 0 },  { 0x391, 0x3a1, 32 },
    { 0x3a3, 0x3ab, 32 },  { 0x400, 0x40f, 80 },   { 0x410, 0x42f, 32 }, { 0x460, 0x481, 0 },
    { 0x48a, 0x4bf, 0 },   { 0x4d0, 0x52f, 0 },    { 0x531, 0x556, 48 }, { 0x1e00, 0x1e95, 0 },
    { 0x1ea0, 0x1eff, 0 }, { 0xff21, 0xff3a, 32 },
};

static uint32_t lower(uint32_t c)
{
    if (c < 0x80) /* the usual case */
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
        if (c >= capitals[i].first && c <= capitals[i].last)
            return capitals[i].distance ? c + capitals[i].distance : c + !((c - capitals[i].first) & 1);
    return c;
}

/* Lower case letters of the tables have one to three bytes. */
static void put(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_char(out, (char)c);
    } else if (c < 0x800) {
        buf_char(out, (char)(0xc0 | c >> 6));
        buf_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_char(out, (char)(0xe0 | c >> 12));
        buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

const char *phrase_words(struct arena *arena, const char *text)
{
    struct buf out = { .arena = arena };
    buf_char(&out, ' ');
    while (*text) {
        const char *at = text;
        const uint32_t c = utf8_next(&text), small = lower(c);
        if (shows_nothing(c))
            continue;
        if (!is_word(small)) {
            if (out.data[out.len - 1] != ' ')
                buf_char(&out, ' ');
        } else if (small == c) {
            buf_add(&out, at, (size_t)(text - at));
        } else {
            put(&out, small);
        }
    }
    if (out.data[out.len - 1] != ' ')
        buf_char(&out, ' ');
    return buf_string(&out);
}

bool phrase_has_words(const char *words)
{
    return words[1] != '\0';
}

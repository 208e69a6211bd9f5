/* Sums the word vectors of a text. */
#include "core/embed/embed_internal.h"

#include <string.h>

#include "core/base/utf8.h"

enum { WORD_BYTES = 64 }; /* longer than any known word; longer words are cut */

/* Splits a text into words: letters and digits, with & . - ' between them. */
struct splitter {
    const struct embed *e;
    float *sum;
    char word[WORD_BYTES];
    size_t len;
    char joint; /* seen after the word; becomes part of it if a letter follows */
    size_t words;
};

static bool is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_joint(uint32_t c)
{
    return c == '&' || c == '.' || c == '-' || c == '\'';
}

/* The row of the word, or -1. */
static long find(const struct embed *e, const char *word, size_t len)
{
    const uint32_t *ends = embed_section(e, SECTION_WORD_ENDS);
    const char *text = embed_section(e, SECTION_WORD_TEXT);
    long low = 0, high = EMBED_WORDS;
    while (low < high) {
        long middle = (low + high) / 2;
        size_t other = ends[middle + 1] - ends[middle];
        int order = memcmp(text + ends[middle], word, other < len ? other : len);
        if (order == 0)
            order = (other > len) - (other < len);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static bool add(struct splitter *s, const char *word, size_t len)
{
    const long row = find(s->e, word, len);
    if (row < 0)
        return false;
    const float scale = ((const float *)embed_section(s->e, SECTION_WORD_SCALES))[row];
    const int8_t *values = (const int8_t *)embed_section(s->e, SECTION_WORD_ROWS) + row * EMBED_WORD_DIM;
    for (size_t i = 0; i < EMBED_WORD_DIM; i++)
        s->sum[i] += scale * (float)values[i];
    return true;
}

/* An unknown compound counts as its parts. */
static void end_word(struct splitter *s)
{
    if (s->len && !add(s, s->word, s->len))
        for (size_t start = 0, i = 0; i <= s->len; i++)
            if (i == s->len || is_joint((unsigned char)s->word[i])) {
                add(s, s->word + start, i - start);
                start = i + 1;
            }
    s->words += s->len > 0;
    s->len = 0;
    s->joint = 0;
}

static void append(struct splitter *s, char c)
{
    if (s->len < WORD_BYTES)
        s->word[s->len++] = c;
}

static void take(struct splitter *s, uint32_t c)
{
    if (c >= 'A' && c <= 'Z')
        c += 'a' - 'A';
    if (is_letter(c)) {
        if (s->joint)
            append(s, s->joint);
        s->joint = 0;
        append(s, (char)c);
    } else if (s->len && !s->joint && is_joint(c)) {
        s->joint = (char)c;
    } else {
        end_word(s);
    }
}

void embed_words(const struct embed *e, const char *text, const char *end, float out[EMBED_WORD_DIM])
{
    struct splitter s = { .e = e, .sum = out };
    memset(out, 0, EMBED_WORD_DIM * sizeof *out);
    while (text < end && s.words < EMBED_WORDS_MAX) {
        uint32_t character = utf8_next(&text);
        size_t count = 0;
        const uint32_t *form = character < 0x80 ? NULL : embed_form(e, SECTION_WORD_FORMS, character, &count);
        if (!form)
            take(&s, character);
        for (size_t i = 0; i < count; i++)
            take(&s, form[i]);
    }
    if (s.words < EMBED_WORDS_MAX)
        end_word(&s);
}

/* The built-in embedder: opens the weights file, and embeds a text. */
#include "core/embed/embed.h"

#include <endian.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "core/base/vector.h"
#include "core/embed/embed_internal.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the mapped weights are used in place");

/* The weight of the word vectors relative to the encoder. */
static const float WORDS_SHARE = 0.8f;

enum { HEAD_BYTES = 32 };

static const uint32_t section_bytes[] = {
#define X(name, bytes) bytes,
    EMBED_FILE(X)
#undef X
};
_Static_assert(sizeof section_bytes / sizeof *section_bytes == EMBED_SECTIONS, "one pointer per section");

/* The size of a row in the sections of variable length. */
static const struct {
    enum embed_section section;
    uint32_t bytes;
} rows_bytes[] = {
    { SECTION_SYMBOLS, 4 },     { SECTION_NODES, sizeof(struct embed_node) },
    { SECTION_PIECE_FORMS, 8 }, { SECTION_PIECE_POOL, 4 },
    { SECTION_COMPOSED, 12 },   { SECTION_WORD_FORMS, 8 },
    { SECTION_WORD_POOL, 4 },
};

static uint64_t read_u64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t read_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- checks of the file ---- */

static bool head_is_valid(const unsigned char *b, size_t len)
{
    return (uintptr_t)b % EMBED_ALIGN == 0 && len >= HEAD_BYTES + 8 * EMBED_SECTIONS &&
           memcmp(b, "DAYEMBED", 8) == 0 && read_u32(b + 8) == EMBED_VERSION &&
           read_u32(b + 12) == EMBED_SECTIONS && read_u64(b + 16) == len &&
           read_u64(b + 24) == hash_bytes(b + HEAD_BYTES, len - HEAD_BYTES, 0);
}

static bool sections_are_inside(const unsigned char *b, size_t len, struct embed *e)
{
    for (size_t i = 0; i < EMBED_SECTIONS; i++) {
        uint32_t offset = read_u32(b + HEAD_BYTES + 8 * i), bytes = read_u32(b + HEAD_BYTES + 8 * i + 4);
        if (offset % EMBED_ALIGN || offset > len || bytes > len - offset ||
            (section_bytes[i] && bytes != section_bytes[i]))
            return false;
        e->section[i] = b + offset;
        e->bytes[i] = bytes;
    }
    for (size_t i = 0; i < sizeof rows_bytes / sizeof *rows_bytes; i++)
        if (e->bytes[rows_bytes[i].section] % rows_bytes[i].bytes)
            return false;
    return e->bytes[SECTION_SYMBOLS] / 4 < 256; /* symbols are bytes */
}

static bool nodes_are_inside(const struct embed *e)
{
    const struct embed_node *nodes = embed_section(e, SECTION_NODES);
    const uint32_t count = e->bytes[SECTION_NODES] / sizeof *nodes;
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].first > count || nodes[i].count > count - nodes[i].first ||
            nodes[i].piece >= EMBED_PIECES)
            return false;
    return count > 0;
}

static bool forms_are_inside(const struct embed *e, enum embed_section which)
{
    const struct embed_form *forms = embed_section(e, which);
    const uint32_t pool = e->bytes[which + 1] / 4;
    for (uint32_t i = 0; i < e->bytes[which] / sizeof *forms; i++)
        if (forms[i].place >> 8 > pool || (forms[i].place & 0xff) > pool - (forms[i].place >> 8))
            return false;
    return true;
}

static bool words_are_inside(const struct embed *e)
{
    const uint32_t *ends = embed_section(e, SECTION_WORD_ENDS);
    for (size_t i = 0; i < EMBED_WORDS; i++)
        if (ends[i] > ends[i + 1])
            return false;
    return ends[EMBED_WORDS] <= e->bytes[SECTION_WORD_TEXT];
}

bool embed_open(const void *bytes, size_t len, struct embed *e)
{
    e->kernels = embed_kernels_best();
    return head_is_valid(bytes, len) && sections_are_inside(bytes, len, e) && nodes_are_inside(e) &&
           forms_are_inside(e, SECTION_PIECE_FORMS) && forms_are_inside(e, SECTION_WORD_FORMS) &&
           words_are_inside(e);
}

/* ---- embedding ---- */

const uint32_t *embed_form(const struct embed *e, enum embed_section which, uint32_t character, size_t *count)
{
    const struct embed_form *forms = embed_section(e, which);
    const uint32_t *pool = embed_section(e, which + 1);
    size_t low = 0, high = e->bytes[which] / sizeof *forms;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (forms[middle].character < character)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == e->bytes[which] / sizeof *forms || forms[low].character != character)
        return NULL;
    *count = forms[low].place & 0xff;
    return pool + (forms[low].place >> 8);
}

size_t embed_scratch_bytes(void)
{
    return sizeof(struct embed_scratch);
}

size_t embed_text_bytes(const char *text)
{
    return utf8_cut(text, strnlen(text, EMBED_BYTES_MAX + 1), EMBED_BYTES_MAX);
}

size_t embed_pieces(const struct embed *e, struct embed_scratch *s, const char *text)
{
    return embed_pieces_cut(e, s, text, text + embed_text_bytes(text));
}

void embed_text(const struct embed *e, struct embed_scratch *s, const char *text, float out[EMBED_DIM])
{
    const char *end = text + embed_text_bytes(text);
    float *words = out + EMBED_WIDTH;
    embed_encoder_run(e, s, embed_pieces_cut(e, s, text, end), out);
    embed_words(e, text, end, words);
    if (vector_normalise(words, EMBED_WORD_DIM)) /* else no word is known: all zeros */
        for (size_t i = 0; i < EMBED_WORD_DIM; i++)
            words[i] *= WORDS_SHARE;
    if (!vector_normalise(out, EMBED_DIM)) { /* only if all weights are zero */
        memset(out, 0, EMBED_DIM * sizeof *out);
        out[0] = 1;
    }
}

/* The tokenizer: normalises a text and splits it into the most likely pieces of the vocabulary.
 *
 * The normalisation is NFKC, as far as it matters to the vocabulary. Compatibility characters are replaced, a
 * letter and its combining mark are composed, and any run of white space becomes one separator, without any
 * at the ends. (Plain NFKC keeps line ends, which the vocabulary lacks; the model was trained this way.)
 * Several marks on one letter are not reordered, and characters without a replacement in the vocabulary are
 * kept. Neither matters: they are unknown to the vocabulary either way. */
#include "core/embed/embed_internal.h"

#include "core/base/utf8.h"

enum { SEPARATOR = 0x2581, FIRST_MARK = 0x300, UNREACHED = UINT16_MAX };

static unsigned char symbol_of(const struct embed *e, uint32_t character)
{
    const uint32_t *symbols = embed_section(e, SECTION_SYMBOLS);
    size_t low = 0, high = e->bytes[SECTION_SYMBOLS] / sizeof *symbols, count = high;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (symbols[middle] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && symbols[low] == character ? (unsigned char)(low + 1) : 0;
}

/* The composed character of a letter and a mark, or 0. */
static uint32_t composed(const struct embed *e, uint32_t letter, uint32_t mark)
{
    const uint32_t (*rows)[3] = embed_section(e, SECTION_COMPOSED);
    size_t low = 0, high = e->bytes[SECTION_COMPOSED] / sizeof *rows, count = high;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows[middle][0] < letter || (rows[middle][0] == letter && rows[middle][1] < mark))
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && rows[low][0] == letter && rows[low][1] == mark ? rows[low][2] : 0;
}

/* Collects symbols. The last character is held back because a mark may follow. */
struct writer {
    const struct embed *e;
    unsigned char *symbols;
    size_t count;
    uint32_t last; /* 0: none */
    bool space;    /* white space followed it */
};

/* A run of characters outside the vocabulary becomes one unknown symbol. */
static void put(struct writer *w, uint32_t character)
{
    unsigned char symbol = symbol_of(w->e, character);
    bool again = !symbol && w->count && !w->symbols[w->count - 1];
    if (w->count < EMBED_SYMBOLS_MAX && !again)
        w->symbols[w->count++] = symbol;
}

static void flush(struct writer *w)
{
    if (w->last)
        put(w, w->last);
    w->last = 0;
}

static void take(struct writer *w, uint32_t character)
{
    uint32_t both = character >= FIRST_MARK && w->last && !w->space ? composed(w->e, w->last, character) : 0;
    if (both) {
        w->last = both;
        return;
    }
    if (utf8_is_space(character)) {
        w->space = true;
        return;
    }
    flush(w);
    if (w->space && w->count > 1)
        put(w, SEPARATOR);
    w->space = false;
    w->last = character;
}

static size_t normalise(const struct embed *e, struct embed_scratch *s, const char *text, const char *end)
{
    struct writer w = { .e = e, .symbols = s->symbols };
    put(&w, SEPARATOR);
    while (text < end && w.count < EMBED_SYMBOLS_MAX) {
        uint32_t character = utf8_next(&text);
        size_t count = 0;
        const uint32_t *form =
            character < 0x80 ? NULL : embed_form(e, SECTION_PIECE_FORMS, character, &count);
        if (!form)
            take(&w, character);
        for (size_t i = 0; i < count; i++)
            take(&w, form[i]);
    }
    flush(&w);
    return w.count;
}

/* ---- the most likely pieces ---- */

static const struct embed_node *child(const struct embed_node *nodes, const struct embed_node *of,
                                      unsigned char symbol)
{
    uint32_t low = of->first, high = of->first + of->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (nodes[middle].symbol < symbol)
            low = middle + 1;
        else
            high = middle;
    }
    return low < of->first + of->count && nodes[low].symbol == symbol ? &nodes[low] : NULL;
}

/* Takes the piece from `start` to `end` as the path to `end`, unless a better one is known. Of two equal ones
 * the shorter piece wins. */
static void reach(struct embed_scratch *s, size_t start, size_t end, uint16_t piece, double score)
{
    double total = s->best[start] + score;
    if (s->from[end] != UNREACHED && total < s->best[end])
        return;
    s->best[end] = total;
    s->from[end] = (uint16_t)start;
    s->piece[end] = piece;
}

static void find_best_path(const struct embed *e, struct embed_scratch *s, size_t count)
{
    const struct embed_node *nodes = embed_section(e, SECTION_NODES);
    const double *scores = embed_section(e, SECTION_SCORES);
    s->best[0] = 0;
    for (size_t i = 0; i <= count; i++)
        s->from[i] = UNREACHED;
    for (size_t start = 0; start < count; start++) {
        const struct embed_node *node = nodes;
        for (size_t end = start; end < count && (node = child(nodes, node, s->symbols[end]));)
            if (end++, node->piece)
                reach(s, start, end, node->piece, scores[node->piece]);
        if (s->from[start + 1] == UNREACHED)
            reach(s, start, start + 1, 0, 0); /* unknown */
    }
}

size_t embed_pieces_cut(const struct embed *e, struct embed_scratch *s, const char *text, const char *end)
{
    const size_t count = normalise(e, s, text, end);
    find_best_path(e, s, count);
    for (size_t at = count; at > 0; at = s->from[at]) /* the path is stored backwards */
        s->next[s->from[at]] = (uint16_t)at;
    size_t pieces = 0;
    for (size_t at = 0; at < count && pieces < EMBED_PIECES_MAX; at = s->next[at])
        s->pieces[pieces++] = s->piece[s->next[at]];
    return pieces;
}

/* Shared by the files of the built-in embedder. */
#ifndef DAYBOOK_CORE_EMBED_EMBED_INTERNAL_H
#define DAYBOOK_CORE_EMBED_EMBED_INTERNAL_H

#include "core/embed/embed_file.h"
#include "core/embed/embed_kernels.h"

struct embed_scratch {
    /* the encoder: one row per piece, so a short text touches only the start of each array */
    _Alignas(64) float x[EMBED_PIECES_MAX * EMBED_IN];
    float h[EMBED_PIECES_MAX * EMBED_WIDTH];
    float normed[EMBED_PIECES_MAX * EMBED_WIDTH];
    float wide[EMBED_PIECES_MAX * EMBED_INNER];
    float mixed[EMBED_PIECES_MAX * EMBED_WIDTH];
    float shares[EMBED_PIECES_MAX];
    /* the tokenizer */
    double best[EMBED_SYMBOLS_MAX + 1]; /* score of the best path to this position */
    uint16_t from[EMBED_SYMBOLS_MAX + 1], next[EMBED_SYMBOLS_MAX + 1], piece[EMBED_SYMBOLS_MAX + 1];
    unsigned char symbols[EMBED_SYMBOLS_MAX];
    uint16_t pieces[EMBED_PIECES_MAX];
};

static inline const void *embed_section(const struct embed *e, enum embed_section which)
{
    return e->section[which];
}

/* The characters that replace this one according to a list of forms; NULL: not in the list. */
const uint32_t *embed_form(const struct embed *e, enum embed_section forms, uint32_t character,
                           size_t *count);

/* embed_pieces.c: splits the text up to `end` into 1 to 128 pieces in s->pieces, and returns their number. */
size_t embed_pieces_cut(const struct embed *e, struct embed_scratch *s, const char *text, const char *end);
/* embed_encoder.c: encodes the first `count` of s->pieces as a vector of length 1. */
void embed_encoder_run(const struct embed *e, struct embed_scratch *s, size_t count, float out[EMBED_WIDTH]);
/* embed_words.c: the weighted sum of the word vectors; zeros if no word is known. */
void embed_words(const struct embed *e, const char *text, const char *end, float out[EMBED_WORD_DIM]);

#endif

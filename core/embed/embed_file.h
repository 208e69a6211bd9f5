/* The layout of the weights file (core/embed/weights.bin), which tools/embedder_weights writes.
 *
 * Little-endian. A head of 32 bytes:
 *
 *     0  "DAYEMBED"
 *     8  u32 version of the layout
 *    12  u32 number of sections
 *    16  u64 length of the file
 *    24  u64 checksum of the rest of the file: hash_bytes (core/base/hash.h), seed 0
 *
 * Then u32 offset and u32 length in bytes of each section. Then the sections in the order of EMBED_FILE, each
 * aligned to 64 bytes and padded with zeros.
 *
 * Matrices are int8 with one float scale per output (row). Those of dense layers are stored in panels of 16
 * outputs; a panel has 16 adjacent weights per input. */
#ifndef DAYBOOK_CORE_EMBED_EMBED_FILE_H
#define DAYBOOK_CORE_EMBED_EMBED_FILE_H

#include "core/embed/embed.h"

enum {
    EMBED_VERSION = 1,
    EMBED_ALIGN = 64,
    EMBED_PIECES = 8000,     /* of the vocabulary */
    EMBED_PIECE_ROWS = 8002, /* piece vectors of the encoder */
    EMBED_IN = 256,          /* width of a piece vector */
    EMBED_WIDTH = 512,       /* of the encoder */
    EMBED_INNER = 1536,      /* of its feed-forward layers */
    EMBED_HEADS = 4,
    EMBED_PANEL = 16,
    EMBED_WORDS = 60000,
    EMBED_WORD_DIM = 100,
    EMBED_PIECES_MAX = 128,
    EMBED_WORDS_MAX = 1000,
    EMBED_SYMBOLS_MAX = 4096, /* limit of the tokenizer: enough for 128 of the longest pieces */
};

/* X(name, bytes); 0: variable length. */
#define EMBED_DENSE(X, name, in, out) \
    X(name, (in) * (out)) X(name##_SCALES, 4 * (out)) X(name##_BIAS, 4 * (out))
/* A dense layer plus a second one with the rounding errors of its weights, to be added. For layers that see
 * single pieces: in a short text the errors would not average out. */
#define EMBED_FINE(X, name, in, out) EMBED_DENSE(X, name, in, out) EMBED_DENSE(X, name##_FINE, in, out)
#define EMBED_NORM(X, name, width)   X(name##_SCALE, 4 * (width)) X(name##_BIAS, 4 * (width))

#define EMBED_FILE(X)                                                                                  \
    X(SYMBOLS, 0)               /* u32: the characters of all pieces, sorted; symbol 1 is the first */ \
    X(NODES, 0)                 /* struct embed_node: the pieces as a trie */                          \
    X(SCORES, 8 * EMBED_PIECES) /* f64: log probabilities */                                           \
    X(PIECE_FORMS, 0)           /* struct embed_form: NFKC of characters, sorted */                    \
    X(PIECE_POOL, 0)            /* u32: the replacements of PIECE_FORMS */                             \
    X(COMPOSED, 0)              /* u32[3]: letter, mark, letter with mark, sorted */                   \
    X(WORD_FORMS, 0)            /* struct embed_form: characters as lower-case ASCII, sorted */        \
    X(WORD_POOL, 0)                                                                                    \
    X(WORD_ENDS, 4 * (EMBED_WORDS + 1)) /* u32: ends of the sorted words in WORD_TEXT */               \
    X(WORD_TEXT, 0)                                                                                    \
    X(WORD_SCALES, 4 * EMBED_WORDS) /* f32: of the row, times the weight of the word */                \
    X(WORD_ROWS, EMBED_WORDS *EMBED_WORD_DIM)                                                          \
    X(PIECE_SCALES, 4 * EMBED_PIECE_ROWS)                                                              \
    X(PIECE_ROWS, EMBED_PIECE_ROWS *EMBED_IN)                                                          \
    X(TIMESCALES, 4 * EMBED_IN / 2)                                                                    \
    EMBED_FINE(X, WIDEN, EMBED_IN, EMBED_WIDTH)                                                        \
    EMBED_NORM(X, NORM_0, EMBED_IN)                                                                    \
    EMBED_FINE(X, QKV_0, EMBED_IN, 3 * EMBED_IN)                                                       \
    EMBED_DENSE(X, OUT_0, EMBED_IN, EMBED_WIDTH)                                                       \
    EMBED_NORM(X, FFN_NORM_0, EMBED_WIDTH)                                                             \
    EMBED_DENSE(X, FFN_IN_0, EMBED_WIDTH, EMBED_INNER)                                                 \
    EMBED_DENSE(X, FFN_OUT_0, EMBED_INNER, EMBED_WIDTH)                                                \
    EMBED_NORM(X, NORM_1, EMBED_WIDTH)                                                                 \
    EMBED_DENSE(X, QKV_1, EMBED_WIDTH, 3 * EMBED_WIDTH)                                                \
    EMBED_DENSE(X, OUT_1, EMBED_WIDTH, EMBED_WIDTH)                                                    \
    EMBED_NORM(X, FFN_NORM_1, EMBED_WIDTH)                                                             \
    EMBED_DENSE(X, FFN_IN_1, EMBED_WIDTH, EMBED_INNER)                                                 \
    EMBED_DENSE(X, FFN_OUT_1, EMBED_INNER, EMBED_WIDTH)                                                \
    EMBED_DENSE(X, LAST, EMBED_WIDTH, EMBED_WIDTH)

enum embed_section {
#define X(name, bytes) SECTION_##name,
    EMBED_FILE(X)
#undef X
};

/* The children of a node are adjacent and sorted by symbol. Node 0 is the root. */
struct embed_node {
    uint32_t first, symbol;
    uint16_t count;
    uint16_t piece; /* the piece that ends here; 0: none */
};

struct embed_form {
    uint32_t character;
    uint32_t place; /* index of the first replacement in the pool * 256 + number of replacements */
};

#endif

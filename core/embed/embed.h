/* The built-in embedder: maps a text to a vector of 612 numbers. Texts of similar meaning get near vectors.
 */
#ifndef DAYBOOK_CORE_EMBED_EMBED_H
#define DAYBOOK_CORE_EMBED_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Vectors of different models cannot be compared. Any change of weights, tokenizer or arithmetic that changes
 * vectors needs a new name. */
#define EMBED_MODEL "builtin-1"

enum {
    EMBED_DIM = 612,
    EMBED_BYTES_MAX = 16384, /* the rest of a text is ignored */
    EMBED_SECTIONS = 59,
};

struct embed_kernels;

/* Pointers into the mapped weights. Read-only, so threads may share it. */
struct embed {
    const unsigned char *section[EMBED_SECTIONS];
    uint32_t bytes[EMBED_SECTIONS];
    const struct embed_kernels *kernels;
};

/* Scratch memory for one thread: embed_scratch_bytes() bytes, aligned to 64. A short text touches only a
 * small part of it. */
struct embed_scratch;
size_t embed_scratch_bytes(void);

/* Checks the file (layout, sizes, every index, checksum) and keeps pointers into it. Returns false if it is
 * not a weights file of this version. */
bool embed_open(const void *bytes, size_t len, struct embed *e);

/* Embeds valid UTF-8 of any length into a vector of length 1. Uses the first 128 pieces and the first 1,000
 * words within the first EMBED_BYTES_MAX. On one machine, the same text always gives the same bytes. */
void embed_text(const struct embed *e, struct embed_scratch *s, const char *text, float out[EMBED_DIM]);

/* The bytes of the text that are used: all, or a prefix that ends between characters. */
size_t embed_text_bytes(const char *text);
/* The number of pieces used. The cost of embedding grows with it. */
size_t embed_pieces(const struct embed *e, struct embed_scratch *s, const char *text);

#endif

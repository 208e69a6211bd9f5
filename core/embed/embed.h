/* The built-in embedder: a text becomes 612 numbers that are near those of texts with a similar meaning. */
#ifndef DAYBOOK_CORE_EMBED_EMBED_H
#define DAYBOOK_CORE_EMBED_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Vectors of another name are of another space: any change of weights, tokenizer or arithmetic that changes
 * vectors needs a new one. */
#define EMBED_MODEL "builtin-1"

enum {
    EMBED_DIM = 612,
    EMBED_MOST_BYTES = 16384, /* of a text that are looked at */
    EMBED_SECTIONS = 59,
};

struct embed_kernels;

/* The weights, where they are mapped. Reading is safe from many threads. */
struct embed {
    const unsigned char *section[EMBED_SECTIONS];
    uint32_t bytes[EMBED_SECTIONS];
    const struct embed_kernels *kernels;
};

/* Room to work in, for one thread; a caller needs embed_scratch_bytes() of it, aligned to 64 bytes. Only what
 * a text needs of it is touched. */
struct embed_scratch;
size_t embed_scratch_bytes(void);

/* Checks the file (layout, sizes, every index in it, checksum) and keeps pointers into it. False: it is not
 * the file that this code was made for. */
bool embed_open(const void *bytes, size_t len, struct embed *e);

/* Embeds valid UTF-8 of any length into a vector of length 1. Of a long text the first 128 pieces and the
 * first 1,000 words count, within its first EMBED_MOST_BYTES. The same text gives the same bytes on the same
 * machine. */
void embed_text(const struct embed *e, struct embed_scratch *s, const char *text, float out[EMBED_DIM]);

/* How much of the text is looked at: all of it, or a start that cuts no character. */
size_t embed_text_bytes(const char *text);
/* How many pieces of the text count: what its cost grows with. */
size_t embed_pieces(const struct embed *e, struct embed_scratch *s, const char *text);

#endif

/* Encoded text inside a text: base64, hexadecimal, binary and decimal codes of characters, Morse code. */
#ifndef DAYBOOK_CORE_GUARD_DECODE_H
#define DAYBOOK_CORE_GUARD_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"

enum {
    DECODE_BASE64_MIN = 16, /* characters of a run */
    DECODE_HEX_MIN = 16,
    DECODE_BINARY_MIN = 48,
    DECODE_GROUPS_MIN = 8, /* "69 67 6e …", "01101001 …", "105 103 …" */
    DECODE_PROSE_MIN = 16, /* bytes of what counts as prose */
};

/* What a run became. The end of a piece in `text` is the start of the next, or the end. */
struct decode_piece {
    size_t at;         /* in `text` of struct decoded */
    size_t start, end; /* of the run, in the source */
};

struct decoded {
    const char *text; /* the pieces, each ended by a newline; valid UTF-8 */
    size_t len;
    const struct decode_piece *pieces;
    size_t count;
    const struct decode_piece *prose; /* the first piece that is words of a language, or NULL */
};

/* Decodes the runs of valid UTF-8 that become readable text; all others (order ids, hashes, tables of
 * numbers) are left alone. The result is shorter than the source, and takes time linear in `len`. */
void decode_runs(struct arena *arena, const char *text, size_t len, struct decoded *out);

/* The piece that byte `at` of the decoded text belongs to. */
const struct decode_piece *decode_piece_of(const struct decoded *d, size_t at);

#endif

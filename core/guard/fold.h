/* Folding: a text as its reader takes it, without what Unicode and escapes can hide. */
#ifndef DAYBOOK_CORE_GUARD_FOLD_H
#define DAYBOOK_CORE_GUARD_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

/* Ways in which a text was disguised, as a set. Ordinary text has some of them too (full-width digits in
 * Japanese, entities in HTML), so none is an offence by itself: see `hidden`. */
enum fold_disguise {
    FOLD_FORMS = 1 << 0,      /* full width, mathematical, enclosed, small capitals, ligatures */
    FOLD_LOOKALIKES = 1 << 1, /* letters of another script inside a word */
    FOLD_INVISIBLE = 1 << 2,  /* zero-width characters, soft hyphens, variation selectors, tag characters */
    FOLD_DIRECTION = 1 << 3,  /* bidirectional controls */
    FOLD_MARKS = 1 << 4,      /* combining marks */
    FOLD_ESCAPES = 1 << 5,    /* HTML entities, percent, \u and \x */
    FOLD_LEET = 1 << 6,       /* digits and signs for letters; found by the reader of the words */
    FOLD_SPACED = 1 << 7,     /* letters with gaps between them, or words without; likewise */
    FOLD_ENCODED = 1 << 8,    /* base64, hex, binary; found by core/guard/decode.h */
};
enum { FOLD_DISGUISES = 9 };
extern const char *const fold_disguise_names[FOLD_DISGUISES + 1]; /* in that order, NULL-terminated */

/* From folded byte `at` on, up to the next run, the original is at the same distance from `from`. */
struct fold_run {
    uint32_t at, from;
};

struct folded {
    const char *text; /* NUL-terminated; NUL bytes of the original are spaces */
    size_t len;
    size_t original_len;
    const struct fold_run *runs;
    size_t run_count;
    unsigned disguises; /* enum fold_disguise */
    bool hidden;        /* text that no reader sees: tag characters, a code in selectors or zero widths, … */
    size_t hidden_start, hidden_end; /* in the original, from the first to the last invisible character */
};

/* Folds valid UTF-8 of less than 4 GiB. The folded text is never longer than the original, and:
 *
 *   case, accents and compatibility forms are gone: "Ｉｇｎòʀｅ" is "ignore"; punctuation is ASCII
 *   letters that look like Latin ones are Latin in words that mix scripts; other words keep their letters
 *   invisible characters and combining marks are gone; tag characters are the ASCII that they spell
 *   HTML entities, percent, \u and \x escapes are what they stand for, also when escaped twice
 *
 * It is valid UTF-8 again, and takes time linear in `len`. */
void fold_text(struct arena *arena, const char *text, size_t len, struct folded *out);

/* The offset in the original of the character that became folded byte `at`; the original length for
 * `at` == len. It does not fall as `at` rises. */
size_t fold_origin(const struct folded *f, size_t at);

/* The Latin letter that a letter of another script looks like, or 0. */
char fold_lookalike(uint32_t character);

#endif

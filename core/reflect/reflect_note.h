/* The text of a note: five slots of bullets, as written by a model or the built-in reflector, and as stored.
 * All texts are valid UTF-8; lengths are in characters. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_NOTE_H
#define DAYBOOK_CORE_REFLECT_REFLECT_NOTE_H

#include "core/reflect/slot_set.h"

enum {
    NOTE_CHARS_MAX = 2000,   /* of a stored note */
    ANSWER_CHARS_MAX = 4000, /* of an answer: a longer one is rejected */
};

enum note_verdict {
    NOTE_GOOD,
    NOTE_EMPTY,
    NOTE_TOO_LONG,
    NOTE_QUOTES_AVOID_RULE,
    NOTE_MISSING_SLOT,
    NOTE_TOO_MANY_BULLETS,
};
extern const char *const note_verdict_names[]; /* "good", "empty", "too_long" …; NULL-terminated */

struct note_checked {
    enum note_verdict verdict;
    const char *text;   /* of a good note, in the stored form */
    const char *detail; /* of a rejected note: what is wrong */
};

/* Validates an answer and converts it to the stored form: the headings of reflect_slot_headings in their
 * order, except those of `suppressed`, each followed by its bullets ("- ", one per line) or
 * reflect_no_pattern, and nothing else. A stored text is left unchanged. Headings may have other markup,
 * another case and another order; text before the first heading or below an unknown one is dropped. No bullet
 * can end its line, a tagged block or a quotation. A text longer than NOTE_CHARS_MAX loses whole bullets, the
 * last of the longest slot first; the only bullet of a slot is cut ("…") instead. An avoid rule counts as
 * quoted if its words occur in the answer in the same order, ignoring white space, punctuation and case. A
 * bare name ("DOGE", "ETH-PERP") counts only if it is the whole bullet, because a lesson may have to name it.
 */
struct note_checked reflect_note_check(struct arena *arena, const char *answer, const char *const *avoid,
                                       size_t avoid_count, slot_set suppressed);

/* A stored text without these slots. */
const char *reflect_note_without(struct arena *arena, const char *text, slot_set suppressed);

/* Writes the bullets added, removed and kept from `before` (NULL: none) to `after`, by slot:
 * {"entry_timing":{"added":[…],"removed":[…],"kept":1},…}. */
void reflect_note_diff_json(struct buf *out, const char *before, const char *after);

/* The segment of a system prompt: a block with a disclaimer and the lessons; "" if the text is NULL or "". */
const char *reflect_note_segment(struct arena *arena, const char *text);

#endif

/* The text of a note: five slots of bullets, as a model or the built-in reflector wrote it and as it is kept.
 * All texts are valid UTF-8; lengths are in characters. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_NOTE_H
#define DAYBOOK_CORE_REFLECT_REFLECT_NOTE_H

#include "core/reflect/slot_set.h"

enum {
    NOTE_CHARS_MAX = 2000, /* of what is kept */
    NOTE_SAID_MAX = 4000,  /* of what is worth reading at all */
};

enum note_verdict {
    NOTE_GOOD,
    NOTE_EMPTY,
    NOTE_TOO_LONG,
    NOTE_QUOTES_AVOID_RULE,
    NOTE_MISSING_SLOT,
    NOTE_TOO_MANY_BULLETS,
};
extern const char *const note_verdict_names[]; /* "good", "empty", "too_long", "quotes_avoid_rule" … */

struct note_checked {
    enum note_verdict verdict;
    const char *text;   /* of a good one: in the one form that notes are kept in */
    const char *detail; /* of the others: what exactly is wrong, in words */
};

/* Reads what was said and brings it to the form that notes are kept in: the headings of
 * reflect_slot_headings in their order, without those of `suppressed`, under each its bullets ("- ", a line
 * each) or reflect_no_pattern, nothing else; a kept text stays as it is. A heading may have come with other
 * marks, in other case, in another order; text before the first one and below a foreign one goes. No bullet
 * can end its line, a tag's block or a quotation. What is longer than NOTE_CHARS_MAX loses whole bullets, the
 * last of the longest slot first; the only bullet of a slot is cut ("…") instead. An avoid rule counts as
 * quoted when its words stand in what was said in their order, whatever the white space, punctuation and case
 * between and in them; one that is a bare name ("DOGE", "ETH-PERP") only when it is all that a bullet says,
 * as a lesson may have to name it. */
struct note_checked reflect_note_check(struct arena *arena, const char *said, const char *const *avoid,
                                       size_t avoid_count, slot_set suppressed);

/* A kept text without these slots. */
const char *reflect_note_without(struct arena *arena, const char *text, slot_set suppressed);

/* What of `before` (NULL: there was none) is not in `after`, and the other way round, slot by slot:
 * {"entry_timing":{"added":[…],"removed":[…],"kept":1},…}. */
void reflect_note_diff_json(struct buf *out, const char *before, const char *after);

/* The segment of a system prompt: a block with the line that says what lessons are, and the lessons; "" when
 * the text is NULL or "". */
const char *reflect_note_segment(struct arena *arena, const char *text);

#endif

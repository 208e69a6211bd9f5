/* Lessons: which status may follow which, how they are rendered, and when two of them contradict each other.
 */
#ifndef DAYBOOK_CORE_LESSONS_LESSON_H
#define DAYBOOK_CORE_LESSONS_LESSON_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"

enum lesson_status {
    LESSON_PROPOSED,
    LESSON_VALIDATED,
    LESSON_RETIRED,
    LESSON_SUPERSEDED,
    LESSON_STATUSES,
};

/* The names in the order of the enum, NULL-terminated: the `choices` of a field. */
extern const char *const lesson_status_names[LESSON_STATUSES + 1];

/* False for a name that is no status. */
bool lesson_status_find(const char *name, enum lesson_status *status);
/* Validated may follow validated: new outcome data. Nothing follows retired or superseded. */
bool lesson_may_become(enum lesson_status from, enum lesson_status to);
/* Proposed and validated lessons are rendered into prompts. */
bool lesson_is_active(enum lesson_status status);

/* What a rendered block holds. */
struct lesson_block {
    size_t tokens;  /* of the whole text, tags included: never more than the budget */
    size_t count;   /* lessons in the text: the newest `count` of those given */
    size_t omitted; /* lessons given that the budget had no room for: the oldest */
};

/* Appends the <learned_patterns> block of takeaways given newest first; in the text the newest is last. No
 * takeaways at all give the line "(no lessons yet)". Where the budget has no room for the tags and one line,
 * nothing is appended. */
struct lesson_block lesson_block_render(struct buf *out, const char *const *newest_first, size_t count,
                                        size_t max_tokens);

/* True when a takeaway holds the start of one of the block's own tags, which would let it end the block
 * early: in any case, with blanks between the parts. */
bool lesson_has_markup(const char *takeaway);

/* One lesson as columns of text; the members that may be NULL say so. */
struct lesson_text {
    const char *id, *at, *takeaway, *context, *outcome;
    const char *tags;     /* "calibration, macro" */
    const char *evidence; /* one in each line */
    const char *status, *status_at;
    const char *status_reason; /* or NULL */
    const char *superseded_by; /* or NULL */
    const char *metric;        /* of the validation; NULL: it was never validated */
    const char *value, *sample_size;
    const char *baseline, *note; /* or NULL */
};

/* Appends the lesson as Markdown: a heading, its facts, its texts, its evidence. The texts show as they are
 * written. */
void lesson_markdown(struct buf *out, const struct lesson_text *lesson);

/* Why two takeaways that read alike seem to contradict each other, or NULL: opposite words, a negation in
 * only one of them, or the same words with other numbers. A heuristic for people to look at: call it for
 * similar takeaways only. */
const char *lesson_conflict(const char *a, const char *b, struct arena *arena);

/* Whether two takeaways that do not contradict each other say nearly the same, by the similarity of their
 * texts (0 to 1). */
bool lesson_is_duplicate(double similarity);

#endif

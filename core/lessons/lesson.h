/* Lessons: the transitions of their status, their rendering, and a check for contradictions. */
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

/* False: there is no such status. */
bool lesson_status_find(const char *name, enum lesson_status *status);
/* A validated lesson may be validated again, with new outcome data. Retired and superseded are final. */
bool lesson_may_become(enum lesson_status from, enum lesson_status to);
/* Proposed and validated lessons are rendered into prompts. */
bool lesson_is_active(enum lesson_status status);

/* The contents of a rendered block. */
struct lesson_block {
    size_t tokens;  /* of the whole text with its tags: never more than the budget */
    size_t count;   /* lessons in the text: the newest ones */
    size_t omitted; /* lessons that did not fit: the oldest ones */
};

/* Appends the <learned_patterns> block. Takeaways are given newest first; in the text the newest is last.
 * Without takeaways it has the line "(no lessons yet)". Appends nothing if the budget has no room for the
 * tags and one line. */
struct lesson_block lesson_block_render(struct buf *out, const char *const *newest_first, size_t count,
                                        size_t max_tokens);

/* Whether a takeaway contains the start of one of the block's own tags, in upper or lower case and with any
 * blanks inside. Such a takeaway could end the block early. */
bool lesson_has_markup(const char *takeaway);

/* A lesson as text. Members that may be NULL say so. */
struct lesson_text {
    const char *id, *at, *takeaway, *context, *outcome;
    const char *tags;     /* "calibration, macro" */
    const char *evidence; /* one per line */
    const char *status, *status_at;
    const char *status_reason; /* or NULL */
    const char *superseded_by; /* or NULL */
    const char *metric;        /* of the validation; NULL: never validated */
    const char *value, *sample_size;
    const char *baseline, *note; /* or NULL */
};

/* Appends the lesson as Markdown: a heading, its facts, its texts, its evidence. Markup in the texts is
 * escaped.
 */
void lesson_markdown(struct buf *out, const struct lesson_text *lesson);

/* Why two similar takeaways seem to contradict each other, or NULL: opposite words, a negation in only one of
 * them, or the same words with other numbers. A heuristic that people review. Call it for similar takeaways
 * only. */
const char *lesson_conflict(const char *a, const char *b, struct arena *arena);

/* Whether two takeaways without a contradiction are duplicates, by the similarity of their texts (0 to 1). */
bool lesson_is_duplicate(double similarity);

#endif

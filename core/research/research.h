/* The texts of a research step: the prompt for the model, and the lesson of a surprising answer. */
#ifndef DAYBOOK_CORE_RESEARCH_RESEARCH_H
#define DAYBOOK_CORE_RESEARCH_RESEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/decimal.h"

/* Earlier research on another ticker, shown as an example of method. */
struct research_case {
    const char *ticker, *created_at, *question, *answer;
    const char *probability; /* or NULL */
    const char *confidence;
};

struct research_question {
    const char *ticker, *task_type;
    const char *question;              /* NULL: the model derives it from the task and the signals */
    const char *signals;               /* a JSON object */
    const char *const *takeaways;      /* newest first */
    const struct research_case *cases; /* best first */
    size_t takeaway_count, case_count;
    int64_t pending;  /* possible cases that could not be compared yet; the block of cases says so */
    bool wants_cases; /* false: their block is left out */
    size_t max_tokens;
};

struct research_prompt {
    const char *system, *user;
    size_t tokens;  /* of both, at most max_tokens; if nothing fits, the minimum that is needed */
    size_t lessons; /* how many it contains, the newest */
    size_t cases;   /* how many it contains, the best */
};

/* False when max_tokens is too small for the frame and the user's message. The same question gives the same
 * bytes. Untrusted texts (takeaways, cases) cannot end their block or begin another: each is on one line,
 * and its "<" is written as "&lt;". The parts that most questions share come first, for prompt caches. */
bool research_prompt(struct arena *arena, const struct research_question *q, struct research_prompt *out);

/* The query for analogous cases: the question, else the question of the prior, else the task and the signals.
 */
const char *research_query(struct arena *arena, const struct research_question *q,
                           const char *prior_question);

/* The tag of lessons about a task type. A tag contains no comma and no tab. */
const char *research_tag(struct arena *arena, const char *task_type);

enum { RESEARCH_TAGS = 3 };
/* The tags that select the lessons for a task type: its own tag, and the tags of lessons about method. */
void research_tags(struct arena *arena, const char *task_type, const char *tags[RESEARCH_TAGS]);

/* Computes how far the probability moved from the prior's; a prior without one counts as 0.5. Returns true if
 * it moved by more than 0.25 in either direction, which is enough for a lesson. */
bool research_shift(const char *prior, const char *probability, struct decimal *shift);

/* An answer whose probability moved that far. */
struct research_surprise {
    const char *ticker, *task_type, *signals;
    const char *prior; /* its probability, or NULL */
    const char *probability;
    struct decimal shift;
    const char *age_days; /* of the prior */
    bool new_filing, guidance_update;
    const char *const *changed; /* regime tags that differ from the prior's */
    size_t changed_count;
};

/* Texts within the limits of a lesson (2,000 and 300 characters). The takeaway is one line. */
struct research_lesson {
    const char *context, *outcome, *takeaway;
};
struct research_lesson research_lesson(struct arena *arena, const struct research_surprise *s);

#endif

/* Decides whether a question must be asked again or its prior answer can be reused. */
#ifndef DAYBOOK_CORE_EPISODIC_RERUN_H
#define DAYBOOK_CORE_EPISODIC_RERUN_H

#include "core/base/decimal.h"
#include "core/episodic/regime_tag.h"

enum rerun_reason {
    RERUN_NO_PRIOR,
    RERUN_NEW_FILING,
    RERUN_GUIDANCE_UPDATE,
    RERUN_REGIME_CHANGED, /* a tag that both have differs */
    RERUN_REGIME_UNKNOWN, /* the caller omits a tag of the prior */
    RERUN_LOW_CONFIDENCE,
    RERUN_REASONS,
};
extern const char *const rerun_reason_names[RERUN_REASONS + 1]; /* NULL-terminated */

enum { RERUN_TAGS_MAX = 16 }; /* tags in one regime */

struct rerun_prior {
    struct decimal confidence; /* not valid: unknown, which does not count as low */
    struct regime_tags regime;
};

/* The current signals. A tag that the prior does not have is ignored. */
struct rerun_signals {
    bool new_filing, guidance_update;
    struct regime_tags regime;
};

struct rerun {
    unsigned reasons; /* bit n: reason n; 0: the prior can be reused */
    size_t changed_count, unknown_count;
    const char *changed[RERUN_TAGS_MAX], *unknown[RERUN_TAGS_MAX]; /* tags of the prior, in its order */
};

/* `prior` NULL: RERUN_NO_PRIOR is the only reason. Doubt counts as a reason, because an unnecessary model
 * call costs little, while a stale answer affects position sizes. */
struct rerun rerun_decide(const struct rerun_prior *prior, const struct rerun_signals *signals);

#endif

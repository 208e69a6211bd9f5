/* Whether a question must be asked again, or the prior answer still holds. */
#ifndef DAYBOOK_CORE_EPISODIC_RERUN_H
#define DAYBOOK_CORE_EPISODIC_RERUN_H

#include "core/base/decimal.h"
#include "core/episodic/regime_tag.h"

enum rerun_reason {
    RERUN_NO_PRIOR,
    RERUN_NEW_FILING,
    RERUN_GUIDANCE_UPDATE,
    RERUN_REGIME_CHANGED, /* a name that both sides have has another value */
    RERUN_REGIME_UNKNOWN, /* the prior has a name that the caller left out */
    RERUN_LOW_CONFIDENCE,
    RERUN_REASONS,
};
extern const char *const rerun_reason_names[RERUN_REASONS + 1]; /* NULL-terminated */

enum { RERUN_TAGS_MOST = 16 }; /* names in one regime */

struct rerun_prior {
    struct decimal confidence; /* not valid: not known, which is not low */
    struct regime_tags regime;
};

/* What the caller knows now. A name that only the caller has says nothing. */
struct rerun_signals {
    bool new_filing, guidance_update;
    struct regime_tags regime;
};

struct rerun {
    unsigned reasons; /* bit n: reason n; 0: the prior can be used again */
    size_t changed_count, unknown_count;
    const char *changed[RERUN_TAGS_MOST], *unknown[RERUN_TAGS_MOST]; /* names of the prior's, in its order */
};

/* `prior` NULL: there is none, and that is the only reason. In doubt it says yes: a call too many costs a
 * little, a stale answer goes into sizing. */
struct rerun rerun_decide(const struct rerun_prior *prior, const struct rerun_signals *signals);

#endif

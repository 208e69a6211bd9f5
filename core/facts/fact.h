/* Rules of facts: the confidence of their sources, and how it decays. */
#ifndef DAYBOOK_CORE_FACTS_FACT_H
#define DAYBOOK_CORE_FACTS_FACT_H

#include "core/base/decimal.h"

/* The names of the sources, NULL-terminated: those of the episodic memory, and corrections by the user. */
extern const char *const fact_sources[];
#define FACT_CORRECTION "user_correction"
/* A correction in a session that may not be stored. Never the source of a stored fact. */
#define FACT_SESSION_CORRECTION "in_session_correction"

/* The default confidence of a source, as a decimal text; NULL: unknown source. */
const char *fact_confidence(const char *source);

/* How an inferred fact that nobody confirmed loses confidence: `rate` per whole period. */
struct fact_decay {
    struct decimal rate, floor;
    int64_t period_us;
};

/* A fact at a time. `decayed_us` is the time up to which decay has been applied. */
struct fact_trust {
    struct decimal confidence;
    int64_t decayed_us;
};

/* Applies decay up to `at_us`. Only whole periods count, and decayed_us moves by those alone. So the result
 * depends on the elapsed time, not on the number of calls: two runs give what the last one alone would have
 * given, and a run that is repeated changes nothing. Returns the number of periods; 0: nothing changed. */
int64_t fact_decay(struct fact_trust *trust, const struct fact_decay *rule, int64_t at_us);

/* Whether the fact belongs into the archive. */
bool fact_is_below(const struct fact_trust *trust, const struct fact_decay *rule);

#endif

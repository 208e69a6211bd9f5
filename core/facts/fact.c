/* Rules of facts: the confidence of their sources, and how it decays. */
#include "core/facts/fact.h"

#include <string.h>

#include "core/episodic/provenance.h"

const char *const fact_sources[] = {
    "user_stated", FACT_CORRECTION, "tool_verified", "agent_inferred", "recalled", "external", NULL,
};

const char *fact_confidence(const char *source)
{
    if (strcmp(source, FACT_CORRECTION) == 0 || strcmp(source, FACT_SESSION_CORRECTION) == 0)
        return provenance_confidence("user_stated");
    return provenance_confidence(source);
}

int64_t fact_decay(struct fact_trust *trust, const struct fact_decay *rule, int64_t at_us)
{
    const struct decimal zero = decimal_from_int(0);
    if (at_us - trust->decayed_us < rule->period_us)
        return 0;
    const int64_t periods = (at_us - trust->decayed_us) / rule->period_us;
    const struct decimal lost = decimal_times(rule->rate, periods);
    trust->decayed_us += periods * rule->period_us;
    if (!decimal_is_valid(lost) || decimal_compare(lost, trust->confidence) > 0)
        trust->confidence = zero;
    else
        trust->confidence = decimal_sub(trust->confidence, lost);
    return periods;
}

bool fact_is_below(const struct fact_trust *trust, const struct fact_decay *rule)
{
    return decimal_compare(trust->confidence, rule->floor) < 0;
}

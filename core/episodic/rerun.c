/* Decides whether a question must be asked again or its prior answer can be reused. */
#include "core/episodic/rerun.h"

const char *const rerun_reason_names[RERUN_REASONS + 1] = {
    [RERUN_NO_PRIOR] = "no_prior",
    [RERUN_NEW_FILING] = "new_filing",
    [RERUN_GUIDANCE_UPDATE] = "guidance_update",
    [RERUN_REGIME_CHANGED] = "regime_changed",
    [RERUN_REGIME_UNKNOWN] = "regime_unknown",
    [RERUN_LOW_CONFIDENCE] = "low_confidence",
};

static const char *const min_confidence = "0.55"; /* a prior with less is not reused */

static bool is_low(struct decimal confidence)
{
    struct decimal min;
    (void)decimal_parse(min_confidence, &min);
    return decimal_is_valid(confidence) && decimal_compare(confidence, min) < 0;
}

static void compare(struct rerun *r, const struct regime_tags *then, const struct regime_tags *now)
{
    for (size_t i = 0; i < then->count && i < RERUN_TAGS_MAX; i++) {
        const struct regime_tag *tag = &then->items[i], *current = regime_tag_find(now, tag->name);
        if (!current)
            r->unknown[r->unknown_count++] = tag->name;
        else if (!regime_tag_same(tag, current))
            r->changed[r->changed_count++] = tag->name;
    }
}

struct rerun rerun_decide(const struct rerun_prior *prior, const struct rerun_signals *signals)
{
    struct rerun r = { .reasons = 1U << RERUN_NO_PRIOR };
    if (!prior)
        return r;
    compare(&r, &prior->regime, &signals->regime);
    const bool holds[RERUN_REASONS] = {
        [RERUN_NEW_FILING] = signals->new_filing,
        [RERUN_GUIDANCE_UPDATE] = signals->guidance_update,
        [RERUN_REGIME_CHANGED] = r.changed_count > 0,
        [RERUN_REGIME_UNKNOWN] = r.unknown_count > 0,
        [RERUN_LOW_CONFIDENCE] = is_low(prior->confidence),
    };
    r.reasons = 0;
    for (int reason = 0; reason < RERUN_REASONS; reason++)
        r.reasons |= (unsigned)holds[reason] << reason;
    return r;
}

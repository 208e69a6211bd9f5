/* The risk state: what the agent and the engine did in this session, as a section of a prompt and as JSON. */
#ifndef DAYBOOK_CORE_LEDGER_RISK_STATE_H
#define DAYBOOK_CORE_LEDGER_RISK_STATE_H

#include <stddef.h>

#include "core/ledger/session.h"

enum {
    RISK_RULES_SHOWN = 6,       /* in the text; the others are counted */
    RISK_REJECTIONS_TAIL = 5,   /* the last rejections, in order */
    RISK_REPEATED = 3,          /* the smallest number that is clearly not noise */
    RISK_REJECTIONS_MAX = 5000, /* of the window; only the newest are counted */
};

#define RISK_WINDOW_US INT64_C(3600000000) /* rejections count for this long */

struct rule_count {
    const char *rule;
    int64_t count; /* above zero */
};

/* An unknown count is 0, an unknown decimal is not valid. */
struct risk_state {
    const struct rule_count *rejections; /* of the window, by rule; each rule once, in any order */
    size_t rule_count;
    const char *const *tail; /* the rules of the last rejections, oldest first; only the last five are used */
    size_t tail_count;
    int64_t executed_today;       /* UTC */
    bool has_pnl_today;           /* the day's starting equity is known */
    struct decimal pnl_today_pct; /* realized today, in percent of the equity at the start of the day */
    int64_t losing_closes;        /* in a row, up to now */
};

/* Adds the rejections of the window, given newest first: counts them by rule and keeps the last five.
 * Sorts `rules`. */
void risk_state_add_rejections(struct risk_state *r, struct arena *arena, const char **rules, size_t count);
/* Adds the counters of the session as of `now_us`. */
void risk_state_add_session(struct risk_state *r, const struct session *s, int64_t now_us);

/* The rule that the last three rejections have in common, or NULL. */
const char *risk_state_repeated(const struct risk_state *r);

/* Appends "## Recent activity (this session)" and a line for each fact that is not zero, or nothing if all
 * are zero. */
void risk_state_text(struct buf *out, const struct risk_state *r);
/* Appends all facts as members of an object. */
void risk_state_members(struct buf *out, const struct risk_state *r);

#endif

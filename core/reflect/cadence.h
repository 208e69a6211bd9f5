/* The reflection cadence: when to distill lessons from the closed trades of a deployment. */
#ifndef DAYBOOK_CORE_REFLECT_CADENCE_H
#define DAYBOOK_CORE_REFLECT_CADENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

enum cadence { CADENCE_OFF, CADENCE_PER_N_TRADES, CADENCE_DAILY, CADENCES };
extern const char *const cadence_names[CADENCES + 1]; /* NULL-terminated */

#define CADENCE_RETRY_US INT64_C(3600000000) /* after a failed attempt, with the cadence `daily` */

struct cadence_state {
    enum cadence cadence;
    int64_t every_n_trades; /* above zero */
    int64_t closed;         /* trades closed after those that the active note covers */
    int64_t closed_before;  /* how many of them closed before the current tick; 0 outside a tick */
    int64_t now_us;
    bool has_note, has_failed;
    int64_t note_us;   /* creation of the active note */
    int64_t failed_us; /* the last failed attempt */
};

enum cadence_reason { SKIP_CADENCE_OFF, SKIP_NOT_DUE, SKIP_NO_TRADES, SKIP_REASONS };
extern const char *const cadence_reasons[SKIP_REASONS + 1]; /* NULL-terminated */

/* Why a reflection is skipped. Both members are NULL when it is due. */
struct cadence_skip {
    const char *reason; /* one of cadence_reasons */
    const char *detail;
};

/* `name` must be one of cadence_names. */
enum cadence cadence_find(const char *name);
/* The same for a deployment: off if its version has no memory. */
enum cadence cadence_in_force(const char *name, bool memory_enabled);

/* Decides whether a reflection is due.
 *
 * off: never.
 *
 * per_n_trades: when closed / n > closed_before / n. This is also true if a tick closes several trades and
 * skips the exact multiple of n, and never true for a tick that closes none.
 *
 * daily: when a trade has closed and the active note, if any, is from another UTC day; not within an hour of
 * a failed attempt. */
struct cadence_skip cadence_decide(struct arena *arena, const struct cadence_state *s);

/* The same for an explicit request. `any_closed`: the deployment has at least one closed trade. `forced`
 * overrides the cadence, but not the lack of closed trades. */
struct cadence_skip cadence_decide_request(struct arena *arena, const struct cadence_state *s,
                                           bool any_closed, bool forced);

#endif

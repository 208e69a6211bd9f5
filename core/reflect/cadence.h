/* The reflection cadence: when lessons are to be distilled from a deployment's closed trades. */
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
    int64_t closed;         /* trades since the last one that the active note has seen */
    int64_t closed_before;  /* of them, those that earlier ticks have reported; 0 when no tick asks */
    int64_t now_us;
    bool has_note, has_failed;
    int64_t note_us;   /* when the active note was made */
    int64_t failed_us; /* the last attempt that failed */
};

/* Why a reflection is skipped. Both NULL: it is due. */
struct cadence_skip {
    const char *reason; /* "cadence_off", "not_due" or "no_trades" */
    const char *detail;
};

/* The cadence of that name; `name` must be one of them. */
enum cadence cadence_find(const char *name);

/*   off            never
 *   per_n_trades   when another multiple of n trades is complete: closed / n > closed_before / n. A tick that
 *                  closes several trades may step over the multiple, and a tick that closes none completes
 * none. daily          when a trade was closed and the active note, if any, is of another UTC day; not within
 * an hour after an attempt failed. */
struct cadence_skip cadence_decide(struct arena *arena, const struct cadence_state *s);

/* The decision about a request to reflect. `any_closed`: the deployment has a closed trade at all. `forced`
 * overrides the cadence, but without a trade there is nothing to learn from. */
struct cadence_skip cadence_decide_request(struct arena *arena, const struct cadence_state *s,
                                           bool any_closed, bool forced);

#endif

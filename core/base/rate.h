/* A token bucket in one number: the instant at which the bucket will be full again. */
#ifndef DAYBOOK_CORE_BASE_RATE_H
#define DAYBOOK_CORE_BASE_RATE_H

#include <stdint.h>

/* So many events per period on average, and `burst` of them at once after a pause. */
struct rate {
    int64_t interval_ns; /* one event */
    int64_t burst_ns;    /* burst * interval_ns */
};

struct rate rate_of(int64_t events, int64_t period_ns, int64_t burst);

/* Takes one event at `now_ns` from a bucket that is full at `full_ns` (0: a new bucket). Returns the new
 * instant with *wait_ns = 0; or, if the bucket is empty, `full_ns` with the time until it has an event. */
int64_t rate_take(struct rate r, int64_t full_ns, int64_t now_ns, int64_t *wait_ns);

/* A wait in whole seconds for Retry-After, rounded up, at least 1. */
int64_t rate_seconds(int64_t wait_ns);

#endif

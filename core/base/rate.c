/* A token bucket in one number: the instant at which the bucket will be full again. */
#include "core/base/rate.h"

#define NS_PER_S INT64_C(1000000000)

struct rate rate_of(int64_t events, int64_t period_ns, int64_t burst)
{
    const int64_t interval = period_ns / events;
    return (struct rate){ interval, interval * burst };
}

int64_t rate_take(struct rate r, int64_t full_ns, int64_t now_ns, int64_t *wait_ns)
{
    const int64_t next = (full_ns > now_ns ? full_ns : now_ns) + r.interval_ns;
    const int64_t over = next - now_ns - r.burst_ns;
    *wait_ns = over > 0 ? over : 0;
    return over > 0 ? full_ns : next;
}

int64_t rate_seconds(int64_t wait_ns)
{
    const int64_t seconds = (wait_ns + NS_PER_S - 1) / NS_PER_S;
    return seconds > 1 ? seconds : 1;
}

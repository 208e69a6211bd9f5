/* Requests without a valid key, per client address and over all loops. */
#include "server/dispatch/failed_keys.h"

#include "server/http/address_events.h"

#define NS_PER_MINUTE (60 * INT64_C(1000000000))

/* Used by requests without a valid key alone. */
static struct address_events failures = ADDRESS_EVENTS_INITIALIZER;

static struct rate allowance(int64_t per_minute)
{
    return rate_of(per_minute, NS_PER_MINUTE, per_minute);
}

int64_t failed_keys_take(const struct address *a, int64_t per_minute, int64_t now_ns)
{
    return address_events_take(&failures, a, allowance(per_minute), now_ns);
}

void failed_keys_return(const struct address *a, int64_t per_minute, int64_t now_ns)
{
    address_events_return(&failures, a, allowance(per_minute), now_ns);
}

int64_t failed_keys_count(const struct address *a, int64_t now_ns)
{
    return address_events_count(&failures, a, now_ns);
}

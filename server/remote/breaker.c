/* A circuit breaker: blocks requests after several failures in a row, then lets one probe through. */
#include "server/remote/breaker.h"

#include <assert.h>

/* The only function that changes the state. Closed opens, open lets a probe through (half open), and the
 * probe closes or opens it. A request from before the breaker opened may also close it. */
static void set_state(struct breaker *b, enum breaker_state state)
{
    assert(state != BREAKER_HALF_OPEN || b->state == BREAKER_OPEN);
    assert(state != BREAKER_OPEN || b->state != BREAKER_OPEN);
    b->state = state;
}

bool breaker_allows(const struct breaker *b, int64_t now_us)
{
    return b->state == BREAKER_CLOSED || (b->state == BREAKER_OPEN && now_us >= b->until_us);
}

bool breaker_enter(struct breaker *b, int64_t now_us)
{
    if (!breaker_allows(b, now_us))
        return false;
    if (b->state == BREAKER_OPEN)
        set_state(b, BREAKER_HALF_OPEN);
    return true;
}

bool breaker_success(struct breaker *b)
{
    bool closes = b->state != BREAKER_CLOSED;
    set_state(b, BREAKER_CLOSED);
    b->failures = 0;
    b->pause_us = b->until_us = 0;
    return closes;
}

bool breaker_failure(struct breaker *b, int64_t now_us)
{
    if (b->state == BREAKER_OPEN)
        return false; /* a request that started before the breaker opened */
    if (b->state == BREAKER_CLOSED && ++b->failures < BREAKER_FAILURES)
        return false;
    int64_t twice = b->pause_us ? b->pause_us * 2 : BREAKER_FIRST_PAUSE_US;
    b->pause_us = twice < BREAKER_MAX_PAUSE_US ? twice : BREAKER_MAX_PAUSE_US;
    b->until_us = now_us + b->pause_us;
    set_state(b, BREAKER_OPEN);
    return true;
}

void breaker_leave(struct breaker *b)
{
    if (b->state == BREAKER_HALF_OPEN)
        set_state(b, BREAKER_OPEN); /* the next request becomes the probe */
}

/* The turns of a coroutine that has much to do: it reads its body line by line, and lets the loop serve
 * others in between. */
#include "server/config.h"
#include "server/coro.h"
#include "server/http/exchange.h"
#include "server/http/spool.h"

enum { TURN_US = 2000 }; /* a turn of the loop that has lasted so long goes on with others */

static struct exchange *exchange_of(struct call *c)
{
    return container_of(c, struct exchange, call);
}

static void on_next_turn(struct timer *t)
{
    exchange_wake(container_of(t, struct exchange, breath));
}

void call_breathe(struct call *c)
{
    struct exchange *x = exchange_of(c);
    if (loop_clock_us() - c->loop->now_us < TURN_US)
        return;
    x->breath.fire = on_next_turn;
    loop_timer(c->loop, &x->breath, 1); /* not 0, which would be in this turn: its clock stands still */
    while (x->breath.armed && !x->stream.gone) { /* when all ends there is no next turn, but all are gone */
        c->coro = coro_self();
        coro_wait();
    }
    loop_timer_off(c->loop, &x->breath);
}

enum err body_line(struct call *c, char **line, size_t *len, int64_t *number)
{
    struct exchange *x = exchange_of(c);
    size_t most = (size_t)c->loop->config->max_body_bytes;
    *line = NULL; /* also where nothing is asked */
    *number = c->spool ? c->spool->number : 0;
    for (enum spool_found found = SPOOL_MORE; found == SPOOL_MORE;) {
        call_breathe(c);
        if (x->stream.gone)
            return ERR_BAD_REQUEST;
        if (x->http->abandoned)
            return ERR_SHUTTING_DOWN;
        if (!c->spool)
            return OK;
        found = spool_step(c->spool, most, line, len);
        *number = c->spool->number;
        if (found == SPOOL_BROKEN)
            return ERR_INTERNAL;
        if (found == SPOOL_TOO_LONG)
            return problem_set(&c->problem, ERR_LINE_TOO_LONG, "line %lld has more than %zu bytes",
                               (long long)*number, most);
    }
    return OK;
}

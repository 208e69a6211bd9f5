/* Calls that have been answered and have work left for when the loop has nothing else to do. */
#include "server/http/dispatch.h"
#include "server/http/exchange.h"

enum { QUIET_US = 100 * 1000, MOST_TRIES = 20 };

/* One of a loop at a time: what others leave, somebody who needs it does. */
struct quiet {
    struct call_wait wait;
    struct timer timer;
    struct loop *loop;
};

static void on_time(struct timer *t)
{
    call_wake(&container_of(t, struct quiet, timer)->wait, OK);
}

static void give_up(struct call_wait *w)
{
    struct quiet *q = container_of(w, struct quiet, wait);
    loop_timer_off(q->loop, &q->timer);
}

/* Whether nothing has come in that time, and nothing is being worked on. */
static enum err wait_once(struct call *c, struct http *h, struct quiet *q, bool *quiet)
{
    const int64_t begun = h->begun;
    loop_timer(h->loop, &q->timer, QUIET_US);
    TRY(call_wait(c, &q->wait));
    *quiet = h->begun == begun && h->working == 0;
    return OK;
}

bool exchange_is_quiet(struct call *c)
{
    struct http *h = container_of(c, struct exchange, call)->http;
    if (h->quiet || h->draining)
        return false;
    struct quiet q = { .wait.give_up = give_up, .timer.fire = on_time, .loop = h->loop };
    bool quiet = false;
    h->quiet = &q;
    for (int i = 0; i < MOST_TRIES && !quiet; i++)
        if (wait_once(c, h, &q, &quiet) != OK)
            break;
    h->quiet = NULL;
    return quiet;
}

void quiet_end(struct http *h)
{
    if (!h->quiet)
        return;
    struct call_wait *w = &h->quiet->wait;
    w->give_up(w);
    call_wake(w, ERR_SHUTTING_DOWN);
}

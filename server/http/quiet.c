/* Requests that have been answered and have work left for when the loop has nothing else to do. */
#include "server/http/http_internal.h"

enum { QUIET_US = 100 * 1000, MOST_TRIES = 20 };

/* One of a loop at a time. */
struct quiet {
    struct task_wait wait;
    struct timer timer;
    struct loop *loop;
};

static void on_time(struct timer *t)
{
    task_wake(&container_of(t, struct quiet, timer)->wait, OK);
}

static bool give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct quiet *q = container_of(w, struct quiet, wait);
    loop_timer_off(q->loop, &q->timer);
    return true;
}

/* Whether nothing has come in that time, and nothing is being worked on. */
static enum err wait_once(struct task *t, struct http *h, struct quiet *q, bool *quiet)
{
    const int64_t begun = h->begun;
    loop_timer(h->loop, &q->timer, QUIET_US);
    TRY(task_wait(t, &q->wait));
    *quiet = h->begun == begun && h->working == 0;
    return OK;
}

bool exchange_is_quiet(struct exchange *x)
{
    struct http *h = x->http;
    if (h->quiet || h->draining)
        return false;
    struct quiet q = { .wait.give_up = give_up, .timer.fire = on_time, .loop = h->loop };
    bool quiet = false;
    h->quiet = &q;
    for (int i = 0; i < MOST_TRIES && !quiet; i++)
        if (wait_once(x->task, h, &q, &quiet) != OK)
            break;
    h->quiet = NULL;
    return quiet;
}

void quiet_end(struct http *h)
{
    if (h->quiet)
        (void)task_cancel(h->quiet->wait.task, ERR_SHUTTING_DOWN, true);
}

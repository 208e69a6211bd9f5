/* Tasks: wait, wake, cancel, yield. */
#include "server/task.h"

#include "server/coro.h"
#include "server/log.h"

enum { TURN_US = 2000 }; /* a task yields after it has run this long in one turn of the loop */

static enum err check_coroutine(const struct task *t)
{
    if (coro_self())
        return OK;
    log_event(LOG_ERROR, "wait_outside_coroutine", "request_id=%s", t->id ? t->id : "");
    return ERR_INTERNAL;
}

enum err task_can_wait(const struct task *t)
{
    return t->over ? t->over : check_coroutine(t);
}

void task_expect(struct task *t, struct task_wait *w)
{
    w->task = t;
    t->wait = w;
}

enum err task_wait(struct task *t, struct task_wait *w)
{
    TRY(check_coroutine(t)); /* the operation has started: it must be waited for */
    w->woken = NULL;
    if (w->elsewhere)
        t->elsewhere_us -= t->loop->now_us;
    task_expect(t, w);
    t->coro = coro_self();
    (void)coro_wait();
    if (w->elsewhere)
        t->elsewhere_us += t->loop->now_us;
    return w->why;
}

int64_t task_elsewhere_us(const struct task *t)
{
    return t->elsewhere_us + (t->wait && t->wait->elsewhere ? t->loop->now_us : 0);
}

void task_wake(struct task_wait *w, enum err why)
{
    struct task *t = w->task;
    struct coro *waiting = t->coro;
    w->why = why;
    t->coro = NULL;
    t->wait = NULL;
    if (w->woken)
        w->woken(w);
    else
        coro_resume(waiting);
}

bool task_cancel(struct task *t, enum err why, bool even_writes)
{
    struct task_wait *w = t->wait;
    if (!t->over)
        t->over = why;
    if (!w || (w->give_up && !w->give_up(w, &why, even_writes)))
        return false;
    task_wake(w, why);
    return true;
}

void task_forget(struct task *t)
{
    struct task_wait *w = t->wait;
    enum err why = ERR_SHUTTING_DOWN;
    if (w && w->give_up)
        (void)w->give_up(w, &why, true);
    t->wait = NULL;
}

/* ---- yield ---- */

struct yield {
    struct task_wait wait;
    struct timer timer;
};

static void on_next_turn(struct timer *timer)
{
    task_wake(&container_of(timer, struct yield, timer)->wait, OK);
}

/* It resumes in the next turn anyway, and can be cancelled when it waits for something else. */
static bool yield_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)w;
    (void)why;
    (void)even_writes;
    return false;
}

void task_yield(struct task *t)
{
    if (loop_clock_us() - t->loop->now_us < TURN_US)
        return;
    struct yield b = { .wait.give_up = yield_give_up, .timer.fire = on_next_turn };
    loop_timer(t->loop, &b.timer,
               1); /* 0 would fire in this turn, because now_us does not advance within a turn */
    (void)!task_wait(t, &b.wait);
    loop_timer_off(t->loop, &b.timer);
}

bool task_resume_yielded(struct task *t)
{
    if (!t->wait || t->wait->give_up != yield_give_up)
        return false;
    task_wake(t->wait, OK);
    return true;
}

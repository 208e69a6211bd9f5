/* Seals the events of the journals in one background task per process.
 *
 * The task runs when a request has stored an event, and now and then for events that another instance left,
 * or this one before it was killed. Runs are at least APART_US apart, so that a stream of events is sealed in
 * batches. A journal that another service or a reader seals at the moment is left to it.
 */
#include "server/sealer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "server/coro.h"
#include "server/dispatch/query.h"
#include "server/log.h"

enum { MOST = 200 }; /* events of a journal in one statement, which seals up to 100 journals */

#define APART_US       (INT64_C(100) * 1000)
#define LOOK_US        (INT64_C(10) * 1000 * 1000) /* between two searches for events of other instances */
#define FIRST_RETRY_US (INT64_C(250) * 1000)
#define MAX_RETRY_US   (INT64_C(10) * 1000 * 1000)

struct params {
    const char *after;
    int64_t most;
};

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct params, member)
static const struct field param_fields[] = { P(KIND_TEXT, after), P(KIND_INT, most), END_FIELDS };
/* clang-format on */

COLUMNS(next, owner);
COLUMNS(result, sealed);
QUERY(next_owner, UNSEALED_OWNER, param_fields, READS(next));
QUERY(seal_journals, JOURNALS_SEAL, param_fields, READS(result));

struct sealer {
    struct task task;
    struct problem problem;
    struct loop *loop;
    bool running, stopping;
    struct timer start, timer;
    struct task_wait pause;
    bool until_found; /* the pause ends when there are events */
    int64_t retry_us; /* 0: nothing has failed */

    struct watch notified; /* an eventfd */
    atomic_bool found;
};

static struct sealer *sealer; /* NULL: there is none */

void sealer_found(void)
{
    if (sealer && !atomic_exchange(&sealer->found, true))
        (void)!eventfd_write(sealer->notified.fd, 1);
}

/* ---- pauses ---- */

static void on_time(struct timer *t)
{
    task_wake(&container_of(t, struct sealer, timer)->pause, OK);
}

static bool pause_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct sealer *s = container_of(w, struct sealer, pause);
    loop_timer_off(s->loop, &s->timer);
    return true;
}

static void on_notify(struct watch *w, uint32_t events)
{
    (void)events;
    struct sealer *s = container_of(w, struct sealer, notified);
    eventfd_t value;
    (void)!eventfd_read(w->fd, &value);
    if (s->task.wait == &s->pause && s->until_found) {
        loop_timer_off(s->loop, &s->timer);
        task_wake(&s->pause, OK);
    }
}

static enum err pause_for(struct sealer *s, int64_t us, bool until_found)
{
    if (s->stopping)
        return ERR_SHUTTING_DOWN;
    if (until_found && s->found)
        return OK;
    s->until_found = until_found;
    s->timer.fire = on_time;
    s->pause = (struct task_wait){ .give_up = pause_give_up };
    loop_timer(s->loop, &s->timer, us);
    return task_wait(&s->task, &s->pause);
}

/* ---- sealing ---- */

static void use_arena(struct sealer *s, struct arena *arena)
{
    s->task.arena = arena;
    s->problem = (struct problem){ .arena = arena };
}

static enum err seal_once(struct sealer *s, const struct params *p, int64_t *sealed)
{
    struct arena step = { 0 };
    struct arena *outer = s->task.arena;
    struct rows *r;
    use_arena(s, &step);
    enum err err = query_task_rows(&s->task, &seal_journals, p, &step, &r);
    *sealed = err == OK ? row_int(r, 0, &result.sealed, 0) : 0;
    use_arena(s, outer);
    arena_release(&step);
    return err;
}

static enum err seal_owner(struct sealer *s, const char *owner)
{
    const struct params p = { .most = MOST };
    enum err err = OK;
    s->task.owner = owner;
    for (int64_t sealed = 1; sealed && err == OK && !s->stopping;)
        err = seal_once(s, &p, &sealed);
    s->task.owner = NULL;
    return err;
}

/* A failure of one owner's events does not stop the other owners. */
static enum err seal_owners(struct sealer *s)
{
    struct params p = { .after = "" };
    enum err failed = OK;
    while (!s->stopping) {
        struct rows *r;
        TRY(query_task_rows(&s->task, &next_owner, &p, s->task.arena, &r));
        p.after = rows_text(r, 0, &next.owner);
        if (!p.after)
            break;
        enum err err = seal_owner(s, p.after);
        failed = failed == OK ? err : failed;
    }
    return failed;
}

static void report(struct sealer *s, enum err err)
{
    if (err != OK && !s->retry_us) /* once, not at each retry */
        log_event(LOG_WARN, "sealing_paused", "why=%s; events are sealed when this succeeds",
                  problem_code(err));
    if (err == OK && s->retry_us)
        log_event(LOG_INFO, "sealing_resumed", "events are sealed again");
}

static enum err work(struct sealer *s)
{
    struct arena arena = { 0 };
    use_arena(s, &arena);
    enum err err = seal_owners(s);
    use_arena(s, NULL);
    arena_release(&arena);
    if (!s->stopping)
        report(s, err);
    return err;
}

static enum err wait_for_work(struct sealer *s, enum err err)
{
    if (err == OK) {
        s->retry_us = 0;
        TRY(pause_for(s, APART_US, false));
        return pause_for(s, LOOK_US, true);
    }
    const int64_t twice = s->retry_us ? 2 * s->retry_us : FIRST_RETRY_US;
    s->retry_us = twice < MAX_RETRY_US ? twice : MAX_RETRY_US;
    return pause_for(s, s->retry_us, false);
}

static void run(void *arg)
{
    struct sealer *s = arg;
    s->running = true;
    for (enum err err = OK; err != ERR_SHUTTING_DOWN && !s->stopping;) {
        atomic_store(&s->found, false);
        err = wait_for_work(s, work(s));
    }
    s->running = false;
}

static void on_start(struct timer *t)
{
    coro_start(run, container_of(t, struct sealer, start));
}

bool sealer_open(struct loop *loop)
{
    struct sealer *s = memory_zero(1, sizeof *s);
    s->loop = loop;
    s->task = (struct task){ .loop = loop, .problem = &s->problem, .id = "sealer" };
    s->notified.ready = on_notify;
    s->notified.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->notified.fd < 0) {
        free(s);
        return false;
    }
    loop_watch(loop, &s->notified, EPOLLIN);
    s->start.fire = on_start;
    loop_timer(loop, &s->start, 1);
    sealer = s;
    return true;
}

void sealer_stop(struct loop *loop)
{
    struct sealer *s = sealer;
    if (!s || s->loop != loop)
        return;
    s->stopping = true;
    loop_timer_off(loop, &s->start);
    loop_watch(loop, &s->notified, 0);
    while (s->running)
        if (!task_resume_yielded(&s->task) && !task_cancel(&s->task, ERR_SHUTTING_DOWN, true))
            break;
}

void sealer_close(void)
{
    if (!sealer)
        return;
    close(sealer->notified.fd);
    free(sealer);
    sealer = NULL;
}

/* Tasks: waiting with and without a coroutine, and ending a wait early. */
#include "server/task.h"

#include "db/db.h"
#include "server/coro.h"
#include "server/remote/remote.h"
#include "server/worker.h"
#include "tests/core/unit.h"

static struct loop loop;
static struct task task = { .loop = &loop, .id = "t-1" };

/* What a test waits for. */
struct offer {
    struct task_wait wait;
    enum err result;
    bool ended;
    int given_up;
    bool stubborn; /* like a write in progress */
};

static bool give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    struct offer *o = container_of(w, struct offer, wait);
    if (o->stubborn && !even_writes)
        return false;
    if (o->stubborn)
        *why = ERR_OUTCOME_UNKNOWN;
    o->given_up++;
    return true;
}

static void wait_for(void *arg)
{
    struct offer *o = arg;
    o->result = task_wait(&task, &o->wait);
    o->ended = true;
}

static void start(struct offer *o, bool stubborn)
{
    *o = (struct offer){ .wait.give_up = give_up, .stubborn = stubborn };
    coro_start(wait_for, o);
    ck_assert_ptr_eq(task.wait, &o->wait);
}

START_TEST(a_task_resumes_with_the_value_it_was_woken_with)
{
    struct offer o;
    start(&o, false);
    task_wake(&o.wait, ERR_NOT_FOUND);
    ck_assert(o.ended && o.result == ERR_NOT_FOUND && o.given_up == 0);
    ck_assert_ptr_null(task.wait);
    coro_release_spares();
}
END_TEST

START_TEST(a_wait_can_be_cancelled_but_a_write_only_by_force)
{
    struct offer o;
    ck_assert(!task_cancel(&task, ERR_REQUEST_TIMEOUT, true)); /* it is not waiting */
    start(&o, false);
    ck_assert(task_cancel(&task, ERR_REQUEST_TIMEOUT, false));
    ck_assert(o.ended && o.result == ERR_REQUEST_TIMEOUT && o.given_up == 1);
    start(&o, true);
    ck_assert(!task_cancel(&task, ERR_REQUEST_TIMEOUT, false));
    ck_assert(!o.ended);
    ck_assert(task_cancel(&task, ERR_REQUEST_TIMEOUT, true));
    ck_assert(o.ended && o.result == ERR_OUTCOME_UNKNOWN);
    coro_release_spares();
}
END_TEST

static int released;

static void release(struct worker_job *job)
{
    (void)job;
    released++;
}

static enum err never(void *arg)
{
    (void)arg;
    ck_abort();
}

static void try_all(void *arg)
{
    struct remote_answer answer;
    struct rows *rows = NULL;
    struct worker_job job = { .release = release };
    *(bool *)arg = true;
    ck_assert_int_eq(task_can_wait(&task), ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(worker_run(&task, &job), ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(worker_enter(&task), ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(remote_post(&task, &(struct remote_request){ 0 }, &answer), ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(db_values(&task, statements[0], NULL, NULL, &rows), ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(db_tx(&task, never, NULL), ERR_REQUEST_TIMEOUT);
}

/* Also after a write that could not be cancelled has ended well. */
START_TEST(a_cancelled_task_starts_no_further_step)
{
    struct offer o;
    bool ran = false;
    start(&o, true);
    ck_assert(!task_cancel(&task, ERR_REQUEST_TIMEOUT, false));
    task_wake(&o.wait, OK);
    ck_assert(o.ended && o.result == OK);
    coro_start(try_all, &ran);
    ck_assert(ran);
    coro_release_spares();
}
END_TEST

START_TEST(time_that_others_work_is_counted_apart)
{
    struct offer o = { .wait = { .give_up = give_up, .elsewhere = true } };
    loop.now_us = 1000;
    coro_start(wait_for, &o);
    loop.now_us = 1700;
    ck_assert_int_eq(task_elsewhere_us(&task), 700);
    task_wake(&o.wait, OK);
    loop.now_us = 5000;
    ck_assert_int_eq(task_elsewhere_us(&task), 700);
    start(&o, false);
    loop.now_us = 6000;
    task_wake(&o.wait, OK);
    ck_assert_int_eq(task_elsewhere_us(&task), 700);
    coro_release_spares();
}
END_TEST

static void on_woken(struct task_wait *w)
{
    struct offer *o = container_of(w, struct offer, wait);
    o->ended = true;
    o->result = w->why;
}

START_TEST(work_without_a_coroutine_is_called_back)
{
    struct offer o = { .wait = { .give_up = give_up, .woken = on_woken } };
    task_expect(&task, &o.wait);
    ck_assert(task_cancel(&task, ERR_SHUTTING_DOWN, false));
    ck_assert(o.ended && o.result == ERR_SHUTTING_DOWN);
    o.ended = false;
    task_expect(&task, &o.wait);
    task_forget(&task);
    ck_assert(!o.ended && o.given_up == 2);
    ck_assert_ptr_null(task.wait);
}
END_TEST

/* None of them may start the operation it would wait for. */
START_TEST(waiting_outside_a_coroutine_is_an_error_not_a_crash)
{
    struct offer o = { 0 };
    struct worker_job job = { .release = release };
    struct rows *rows = NULL;
    struct remote_answer answer;
    ck_assert_int_eq(task_wait(&task, &o.wait), ERR_INTERNAL);
    ck_assert_ptr_null(task.wait);
    ck_assert_int_eq(worker_run(&task, &job), ERR_INTERNAL);
    ck_assert_int_eq(released, 1);
    ck_assert_int_eq(worker_enter(&task), ERR_INTERNAL);
    ck_assert_int_eq(remote_post(&task, &(struct remote_request){ 0 }, &answer), ERR_INTERNAL);
    ck_assert_int_eq(db_values(&task, statements[0], NULL, NULL, &rows), ERR_INTERNAL);
    ck_assert_int_eq(db_tx(&task, never, NULL), ERR_INTERNAL);
    ck_assert(!coro_wait());
}
END_TEST

static void yield_twice(void *arg)
{
    task_yield(&task);
    task_yield(&task);
    *(bool *)arg = true;
}

/* The turn of a stopping loop has lasted long, so its tasks yield at every opportunity. */
START_TEST(a_task_that_yields_again_can_be_resumed_again)
{
    bool ended = false;
    ck_assert(loop_open(&loop));
    loop.now_us = 0;
    ck_assert(!task_resume_yielded(&task));
    coro_start(yield_twice, &ended);
    ck_assert(task_resume_yielded(&task) && !ended);
    ck_assert(!task_cancel(&task, ERR_SHUTTING_DOWN, true));
    ck_assert(task_resume_yielded(&task) && ended);
    ck_assert(!task_resume_yielded(&task));
    loop_close(&loop);
    coro_release_spares();
}
END_TEST

UNIT_MAIN("task", a_task_resumes_with_the_value_it_was_woken_with,
          a_wait_can_be_cancelled_but_a_write_only_by_force, a_cancelled_task_starts_no_further_step,
          time_that_others_work_is_counted_apart, work_without_a_coroutine_is_called_back,
          waiting_outside_a_coroutine_is_an_error_not_a_crash, a_task_that_yields_again_can_be_resumed_again)

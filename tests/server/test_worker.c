/* The worker thread of a loop: jobs take turns there, their calls wait without blocking the loop, and may be
 * cancelled at any time. */
#include "server/worker.h"

#include <pthread.h>
#include <sched.h>

#include "server/coro.h"
#include "tests/core/unit.h"

static struct loop loop;
static pthread_t loop_thread;
static int released;     /* jobs; on the loop's thread */
static atomic_bool gate; /* while it is closed, a job that checks it blocks the thread */
static atomic_bool at_gate;
static char order[64]; /* the names of the jobs, step by step */
static atomic_size_t ordered;

struct job {
    struct worker_job job;
    char name;
    int steps, wanted;
    bool gated;
};

static bool job_step(struct worker_job *j)
{
    struct job *job = (struct job *)j;
    ck_assert(!pthread_equal(pthread_self(), loop_thread));
    atomic_store(&at_gate, job->gated);
    while (job->gated && !atomic_load(&gate))
        sched_yield();
    order[ordered] = job->name;
    ordered = ordered + 1 < sizeof order ? ordered + 1 : 0;
    return ++job->steps == job->wanted;
}

static void job_release(struct worker_job *job)
{
    ck_assert(pthread_equal(pthread_self(), loop_thread));
    released++;
    free(job);
}

static struct job *job_new(char name, enum worker_queue line, int wanted)
{
    struct job *job = calloc(1, sizeof *job);
    *job = (struct job){ .job = { .step = job_step, .release = job_release, .queue = line },
                         .name = name,
                         .wanted = wanted };
    return job;
}

/* A task in its coroutine. */
struct asker {
    struct task task;
    struct job *job;
    enum err err;
    int steps;
    bool ended;
};

static void run_asker(void *arg)
{
    struct asker *a = arg;
    a->err = worker_run(&a->task, &a->job->job);
    if (a->err == OK) {
        a->steps = a->job->steps;
        job_release(&a->job->job);
    }
    a->ended = true;
}

static void ask(struct asker *a, struct job *job)
{
    *a = (struct asker){ .task.loop = &loop, .job = job };
    coro_start(run_asker, a);
}

static void turn_until(const bool *ended)
{
    while (!*ended)
        loop_turn(&loop, -1);
}

/* What the daemon does to a task whose time limit has passed. */
static void end_early(struct asker *a)
{
    ck_assert(task_cancel(&a->task, ERR_REQUEST_TIMEOUT, false));
}

static void open_loop(void)
{
    loop = (struct loop){ 0 };
    loop_thread = pthread_self();
    ck_assert(loop_open(&loop));
    loop.worker = worker_open(&loop);
    ck_assert_ptr_nonnull(loop.worker);
}

static void close_loop(void)
{
    worker_close(loop.worker);
    coro_release_spares();
    loop_close(&loop);
}

/* A job that holds the thread until the gate is opened. */
static void hold(void)
{
    struct job *job = job_new('.', WORKER_STATISTICS, 1);
    job->gated = true;
    worker_post(&loop, &job->job);
    while (!atomic_load(&at_gate))
        sched_yield();
}

START_TEST(a_job_runs_step_by_step_and_is_returned_to_its_caller)
{
    static struct asker a;
    open_loop();
    ask(&a, job_new('a', WORKER_STATISTICS, 1000));
    ck_assert(!a.ended);
    turn_until(&a.ended);
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(a.steps, 1000);
    close_loop();
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(both_queues_are_served_in_turn_and_so_are_the_jobs_of_a_queue)
{
    static struct asker s[3], t;
    open_loop();
    hold();
    for (int i = 0; i < 3; i++)
        ask(&s[i], job_new((char)('a' + i), WORKER_STATISTICS, 4));
    ask(&t, job_new('T', WORKER_TEXTS, 2));
    atomic_store(&gate, true);
    for (int i = 0; i < 3; i++)
        turn_until(&s[i].ended);
    ck_assert(t.ended);
    ck_assert_str_eq(order, ".TaTbcabcabcabc");
    close_loop();
}
END_TEST

START_TEST(a_turn_lasts_as_long_as_the_job_says)
{
    static struct asker a, b;
    open_loop();
    hold();
    struct job *long_turns = job_new('a', WORKER_STATISTICS, 3);
    long_turns->job.turn_us = 60 * 1000 * 1000;
    ask(&a, long_turns);
    ask(&b, job_new('b', WORKER_STATISTICS, 1));
    atomic_store(&gate, true);
    turn_until(&b.ended);
    ck_assert_str_eq(order, ".aaab");
    close_loop();
}
END_TEST

START_TEST(a_call_may_be_cancelled_before_or_during_its_job)
{
    static struct asker before, during, stays;
    open_loop();
    struct job *job = job_new('d', WORKER_STATISTICS, 1000);
    job->gated = true;
    ask(&during, job);
    while (!atomic_load(&at_gate))
        sched_yield();
    ck_assert_int_eq(worker_jobs(loop.worker), 1);
    ask(&before, job_new('b', WORKER_STATISTICS, 1));
    ask(&stays, job_new('s', WORKER_STATISTICS, 1));
    end_early(&during);
    end_early(&before);
    ck_assert_int_eq(during.err, ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(before.err, ERR_REQUEST_TIMEOUT);
    ck_assert_int_eq(released, 0); /* the thread has the one, and the list the other */
    atomic_store(&gate, true);
    turn_until(&stays.ended);
    while (worker_jobs(loop.worker))
        loop_turn(&loop, -1);
    ck_assert_int_eq(released, 3);
    close_loop();
    ck_assert_str_eq(order, "ds"); /* and no further step ran for them */
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(a_call_may_be_cancelled_when_its_job_is_done_but_not_yet_reported)
{
    static struct asker a;
    open_loop();
    ask(&a, job_new('a', WORKER_STATISTICS, 1));
    while (!atomic_load(&ordered))
        sched_yield();
    end_early(&a);
    ck_assert_int_eq(a.err, ERR_REQUEST_TIMEOUT);
    close_loop();
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(a_posted_job_is_released_when_it_is_done)
{
    static struct asker a;
    open_loop();
    hold();
    worker_post(&loop, &job_new('p', WORKER_TEXTS, 3)->job);
    ask(&a, job_new('a', WORKER_TEXTS, 4));
    atomic_store(&gate, true);
    turn_until(&a.ended);
    close_loop();
    ck_assert_str_eq(order, ".papapaa");
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(closing_ends_waiting_calls_and_refuses_new_ones)
{
    static struct asker first, second, late;
    open_loop();
    ask(&first, job_new('1', WORKER_STATISTICS, 1 << 30));
    ask(&second, job_new('2', WORKER_TEXTS, 1 << 30));
    worker_post(&loop, &job_new('3', WORKER_TEXTS, 1 << 30)->job);
    worker_close(loop.worker);
    loop.worker = NULL;
    ck_assert(first.ended && second.ended);
    ck_assert_int_eq(first.err, ERR_SHUTTING_DOWN);
    ck_assert_int_eq(second.err, ERR_SHUTTING_DOWN);
    ask(&late, job_new('4', WORKER_TEXTS, 1));
    ck_assert_int_eq(late.err, ERR_SHUTTING_DOWN);
    ck_assert_int_eq(released, 4);
    coro_release_spares();
    loop_close(&loop);
}
END_TEST

/* A task that was admitted, or waits for admission. */
struct guest {
    struct task task;
    enum err err;
    bool ended;
};

static void run_guest(void *arg)
{
    struct guest *g = arg;
    g->err = worker_enter(&g->task);
    g->ended = true;
}

static void enter(struct guest *g)
{
    *g = (struct guest){ .task.loop = &loop };
    coro_start(run_guest, g);
}

START_TEST(a_few_tasks_are_admitted_and_the_others_wait_their_turn)
{
    static struct guest inside[WORKER_SLOTS], waiting[4], refused;
    open_loop();
    for (int i = 0; i < WORKER_SLOTS; i++) {
        enter(&inside[i]);
        ck_assert(inside[i].ended && inside[i].err == OK);
    }
    for (int i = 0; i < 4; i++) {
        enter(&waiting[i]);
        ck_assert(!waiting[i].ended);
    }
    ck_assert(task_cancel(&waiting[1].task, ERR_REQUEST_TIMEOUT, false)); /* it timed out */
    ck_assert_int_eq(waiting[1].err, ERR_REQUEST_TIMEOUT);
    worker_leave(&loop);
    ck_assert(waiting[0].ended && waiting[0].err == OK && !waiting[2].ended);
    worker_leave(&loop);
    ck_assert(waiting[2].ended && waiting[2].err == OK && !waiting[3].ended);
    worker_close(loop.worker);
    loop.worker = NULL;
    ck_assert(waiting[3].ended && waiting[3].err == ERR_SHUTTING_DOWN);
    worker_leave(&loop); /* admitted tasks are not affected */
    enter(&refused);
    ck_assert(refused.ended && refused.err == ERR_SHUTTING_DOWN);
    coro_release_spares();
    loop_close(&loop);
}
END_TEST

START_TEST(a_released_slot_is_free_again)
{
    static struct guest guests[3 * WORKER_SLOTS];
    open_loop();
    for (int i = 0; i < 3 * WORKER_SLOTS; i++) {
        enter(&guests[i]);
        ck_assert(guests[i].ended && guests[i].err == OK);
        worker_leave(&loop);
    }
    close_loop();
}
END_TEST

/* Blocks until the gate is opened. */
static void idle(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
    while (!atomic_load(&gate))
        sched_yield();
}

START_TEST(a_loop_does_not_wait_for_the_idle_work_of_the_thread)
{
    static struct asker before, meanwhile;
    static atomic_bool is_idle;
    open_loop();
    worker_when_idle(loop.worker, 0, idle, &is_idle);
    ask(&before, job_new('b', WORKER_STATISTICS, 1));
    turn_until(&before.ended);
    while (!atomic_load(&is_idle))
        sched_yield();
    ask(&meanwhile, job_new('m', WORKER_STATISTICS, 1)); /* would not return */
    atomic_store(&gate, true);
    turn_until(&meanwhile.ended);
    ck_assert_int_eq(meanwhile.err, OK);
    close_loop();
}
END_TEST

UNIT_MAIN("worker", a_job_runs_step_by_step_and_is_returned_to_its_caller,
          both_queues_are_served_in_turn_and_so_are_the_jobs_of_a_queue, a_turn_lasts_as_long_as_the_job_says,
          a_call_may_be_cancelled_before_or_during_its_job,
          a_call_may_be_cancelled_when_its_job_is_done_but_not_yet_reported,
          a_posted_job_is_released_when_it_is_done, closing_ends_waiting_calls_and_refuses_new_ones,
          a_few_tasks_are_admitted_and_the_others_wait_their_turn, a_released_slot_is_free_again,
          a_loop_does_not_wait_for_the_idle_work_of_the_thread)

/* The embedding worker of a loop: calls wait for it without blocking the loop, and may be cancelled at any
 * time. */
#include "server/embed_worker.h"

#include "core/base/arena.h"
#include "server/coro.h"
#include "server/worker.h"
#include "tests/core/unit.h"

enum { MOST_TEXTS = 64 };

/* A task in its coroutine. */
struct asker {
    struct task task;
    const char *texts[MOST_TEXTS];
    size_t count;
    float out[MOST_TEXTS * EMBED_DIM];
    enum err err;
    bool ended, again; /* again: it makes a second call, whatever the result of the first */
};

static struct loop loop;

static void open_loop(void)
{
    loop = (struct loop){ 0 };
    ck_assert(loop_open(&loop));
    loop.worker = worker_open(&loop);
    ck_assert_ptr_nonnull(loop.worker);
    loop.embed_worker = embed_worker_open(&loop);
    ck_assert_ptr_nonnull(loop.embed_worker);
}

static void close_loop(void)
{
    worker_close(loop.worker);
    embed_worker_close(loop.embed_worker);
    coro_release_spares();
    loop_close(&loop);
}

static void run_asker(void *arg)
{
    struct asker *a = arg;
    a->err = embed_worker_embed(&a->task, a->texts, a->count, a->out);
    if (a->again)
        a->err = embed_worker_embed(&a->task, a->texts, a->count, a->out);
    a->ended = true;
}

static void ask(struct asker *a, const char *text, size_t count)
{
    *a = (struct asker){ .task.loop = &loop, .count = count };
    for (size_t i = 0; i < count; i++)
        a->texts[i] = text;
    coro_start(run_asker, a);
}

static void turn_until(const bool *ended)
{
    while (!*ended)
        loop_turn(&loop, -1);
}

static double cosine(const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < EMBED_DIM; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* What the daemon does to a task whose time limit has passed. */
static void end_early(struct asker *a, enum err why)
{
    ck_assert(task_cancel(&a->task, why, false));
}

START_TEST(each_text_gets_its_vector)
{
    static struct asker a, b;
    open_loop();
    ask(&a, "inflation is falling", 3);
    a.texts[1] = "unused: the texts were copied when it was asked";
    ask(&b, "consumer prices rise more slowly", 1);
    ck_assert(!a.ended && !b.ended);
    turn_until(&a.ended);
    turn_until(&b.ended);
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(b.err, OK);
    ck_assert_mem_eq(a.out, a.out + EMBED_DIM, EMBED_DIM * sizeof(float));
    ck_assert_double_eq_tol(cosine(a.out, a.out), 1, 1e-5);
    ck_assert_double_gt(cosine(a.out, b.out), 0.5);
    struct embed_worker_stats stats;
    embed_worker_stats(loop.embed_worker, &stats);
    ck_assert_int_eq(stats.texts, 4);
    ck_assert_int_eq(stats.queued, 0);
    ck_assert_int_gt(stats.us, 0);
    close_loop();
}
END_TEST

START_TEST(an_empty_call_does_not_wait)
{
    static struct asker a;
    open_loop();
    ask(&a, "", 0);
    ck_assert(a.ended);
    ck_assert_int_eq(a.err, OK);
    close_loop();
}
END_TEST

START_TEST(calls_take_turns)
{
    static struct asker many, one;
    open_loop();
    ask(&many, "a rebuild embeds all that there is", MOST_TEXTS);
    ask(&one, "a question", 1);
    turn_until(&one.ended);
    ck_assert(!many.ended);
    turn_until(&many.ended);
    ck_assert_int_eq(many.err, OK);
    close_loop();
}
END_TEST

START_TEST(a_call_may_be_cancelled_while_its_texts_are_embedded)
{
    static struct asker gone, other;
    open_loop();
    for (int i = 0; i < 8; i++) {
        ask(&gone, "its time is up", MOST_TEXTS);
        gone.out[0] = 42;
        end_early(&gone, ERR_REQUEST_TIMEOUT);
        ck_assert(gone.ended);
        ck_assert_int_eq(gone.err, ERR_REQUEST_TIMEOUT);
    }
    ask(&other, "those that stay are served", 1);
    turn_until(&other.ended);
    ck_assert_int_eq(other.err, OK);
    struct embed_worker_stats stats;
    do {
        loop_turn(&loop, 1000);
        embed_worker_stats(loop.embed_worker, &stats);
    } while (stats.queued); /* the remaining texts are dropped, not embedded */
    ck_assert_int_lt(stats.texts, 8 * MOST_TEXTS);
    ck_assert(gone.out[0] == 42); /* nothing was written to memory that the call may have released */
    close_loop();
}
END_TEST

START_TEST(closing_ends_waiting_calls)
{
    static struct asker first, second, gone;
    open_loop();
    ask(&first, "the service stops", MOST_TEXTS);
    first.again = true; /* and is refused then */
    ask(&second, "before they are done", MOST_TEXTS);
    ask(&gone, "or when they have left", MOST_TEXTS);
    end_early(&gone, ERR_REQUEST_TIMEOUT);
    close_loop();
    ck_assert(first.ended && second.ended);
    ck_assert_int_eq(first.err, ERR_SHUTTING_DOWN);
    ck_assert_int_eq(second.err, ERR_SHUTTING_DOWN);
    ck_assert_int_eq(gone.err, ERR_REQUEST_TIMEOUT);
}
END_TEST

START_TEST(each_loop_has_a_worker_of_its_own)
{
    for (int i = 0; i < 4; i++) {
        struct loop other = { 0 };
        ck_assert(loop_open(&other));
        other.worker = worker_open(&other);
        struct embed_worker *w = embed_worker_open(&other);
        ck_assert_ptr_nonnull(w);
        open_loop();
        static struct asker a;
        ask(&a, "opened and closed side by side", 1);
        worker_close(other.worker);
        embed_worker_close(w);
        loop_close(&other);
        turn_until(&a.ended);
        ck_assert_int_eq(a.err, OK);
        close_loop();
    }
}
END_TEST

UNIT_MAIN("embed_worker", each_text_gets_its_vector, an_empty_call_does_not_wait, calls_take_turns,
          a_call_may_be_cancelled_while_its_texts_are_embedded, closing_ends_waiting_calls,
          each_loop_has_a_worker_of_its_own)

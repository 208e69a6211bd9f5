/* The timers of a loop: each fires once, when it is due, in the order of their times. */
#include "server/loop.h"

#include "tests/core/unit.h"

enum { MANY = 400 };

struct alarm {
    struct timer timer;
    int64_t due_us; /* 0: not armed */
};

static struct loop loop;
static struct alarm alarms[MANY];
static int64_t last_us;
static int fired, armed;

static void on_fire(struct timer *t)
{
    struct alarm *a = container_of(t, struct alarm, timer);
    HOLDS(a->due_us && a->due_us <= loop.now_us);
    HOLDS(!t->armed);
    HOLDS(a->due_us >= last_us);
    last_us = a->due_us;
    a->due_us = 0;
    fired++;
    armed--;
}

static void arm(struct alarm *a, int64_t delay_us)
{
    armed += !a->due_us;
    a->timer.fire = on_fire;
    a->due_us = loop.now_us + delay_us;
    loop_timer(&loop, &a->timer, delay_us);
}

static void disarm(struct alarm *a)
{
    armed -= a->due_us != 0;
    a->due_us = 0;
    loop_timer_off(&loop, &a->timer);
}

/* Fires all due timers. */
static void turn(void)
{
    last_us = 0;
    loop_turn(&loop, 0);
    for (int i = 0; i < MANY; i++)
        HOLDS(!alarms[i].due_us || alarms[i].due_us > loop.now_us);
}

START_TEST(timers_of_any_delay_fire_in_the_order_of_their_times)
{
    ck_assert(loop_open(&loop));
    static const int64_t delays_us[] = { 1, 900, 20, 5000, 300, 7, 5001, 64, 63, 65, 1200, 3000, 2, 0 };
    const int count = sizeof delays_us / sizeof *delays_us;
    for (int i = 0; i < count; i++)
        arm(&alarms[i], delays_us[i]);
    while (fired < count)
        loop_turn(&loop, -1);
    ck_assert_int_eq(armed, 0);
    loop_close(&loop);
}
END_TEST

START_TEST(rearming_and_cancelling_lose_no_timer_and_fire_none_twice)
{
    ck_assert(loop_open(&loop));
    srandom(7);
    for (int step = 0; step < 20000; step++) {
        struct alarm *a = &alarms[random() % MANY];
        if (random() % 4 == 0)
            disarm(a);
        else
            arm(a, random() % (1 << (random() % 24)));
        if (step % 50 == 0)
            turn();
    }
    for (int i = 0; i < MANY; i++)
        if (alarms[i].due_us > loop.now_us + 20000)
            disarm(&alarms[i]);
    while (armed)
        turn();
    for (int i = 0; i < MANY; i++)
        ck_assert(!alarms[i].timer.armed);
    ck_assert_int_gt(fired, 100);
    loop_close(&loop);
}
END_TEST

START_TEST(a_wait_ends_with_the_next_timer)
{
    ck_assert(loop_open(&loop));
    arm(&alarms[0], 3600LL * 1000000);
    arm(&alarms[1], 2000);
    while (!fired)
        loop_turn(&loop, -1);
    ck_assert_int_eq(alarms[1].due_us, 0);
    ck_assert_int_ne(alarms[0].due_us, 0);
    disarm(&alarms[0]);
    loop_close(&loop);
}
END_TEST

UNIT_MAIN("loop", timers_of_any_delay_fire_in_the_order_of_their_times,
          rearming_and_cancelling_lose_no_timer_and_fire_none_twice, a_wait_ends_with_the_next_timer)

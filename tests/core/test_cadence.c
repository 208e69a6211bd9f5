/* When a reflection is due: by tick and by request. */
#include "core/reflect/cadence.h"
#include "tests/core/unit.h"

static struct arena arena;

static bool is_due(const struct cadence_state *s)
{
    return !cadence_decide(&arena, s).reason;
}

START_TEST(cadences_are_found_by_their_names)
{
    for (enum cadence c = CADENCE_OFF; c < CADENCES; c++)
        ck_assert_int_eq(cadence_find(cadence_names[c]), c);
}
END_TEST

START_TEST(without_memory_every_cadence_is_off)
{
    for (enum cadence c = CADENCE_OFF; c < CADENCES; c++) {
        ck_assert_int_eq(cadence_in_force(cadence_names[c], true), c);
        ck_assert_int_eq(cadence_in_force(cadence_names[c], false), CADENCE_OFF);
    }
}
END_TEST

START_TEST(off_is_never_due)
{
    const struct cadence_state s = { .cadence = CADENCE_OFF, .every_n_trades = 1, .closed = 100 };
    ck_assert_str_eq(cadence_decide(&arena, &s).reason, "cadence_off");
}
END_TEST

/* The seed design triggers when a tick closes a trade and the count becomes a multiple of n; here a tick may
 * close several trades. */
START_TEST(per_n_trades_a_tick_is_due_when_it_completes_a_multiple_of_n)
{
    const int64_t closes[] = { 1, 1, 1, 0, 2, 2, 7, 1, 1 }; /* closed: 1 2 3 3 5 7 14 15 16 */
    const bool due[] = { false, false, true, false, false, true, true, true, false };
    struct cadence_state s = { .cadence = CADENCE_PER_N_TRADES, .every_n_trades = 3 };
    for (size_t i = 0; i < sizeof due; i++) {
        s.closed_before = s.closed;
        s.closed += closes[i];
        ck_assert_msg(is_due(&s) == due[i], "tick %zu", i);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(per_n_trades_a_request_is_due_from_n_trades_on)
{
    struct cadence_state s = { .cadence = CADENCE_PER_N_TRADES, .every_n_trades = 3, .closed = 2 };
    ck_assert_str_eq(cadence_decide(&arena, &s).detail, "2 of 3 trades were closed since the last note");
    for (s.closed = 3; s.closed < 10; s.closed++)
        ck_assert(is_due(&s));
    s.has_failed = true;
    ck_assert_msg(is_due(&s), "a failed attempt can be repeated at once");
    arena_release(&arena);
}
END_TEST

START_TEST(daily_is_due_on_a_day_other_than_the_notes_once_a_trade_was_closed)
{
    struct cadence_state s = { .cadence = CADENCE_DAILY,
                               .every_n_trades = 10,
                               .now_us = unit_time_us("2026-06-01T10:00:00Z") };
    ck_assert_str_eq(cadence_decide(&arena, &s).detail, "no trade was closed since the last note");
    s.closed = s.closed_before = 1;
    ck_assert_msg(is_due(&s), "every tick reports it until there is a note");
    s.has_note = true;
    s.note_us = unit_time_us("2026-06-01T00:00:00Z");
    ck_assert_str_eq(cadence_decide(&arena, &s).detail, "there is a note of this day (UTC) already");
    s.now_us = unit_time_us("2026-06-01T23:59:59.999999Z");
    ck_assert(!is_due(&s));
    s.now_us = unit_time_us("2026-06-02T00:00:00Z");
    ck_assert(is_due(&s));
    s.closed = 0;
    ck_assert(!is_due(&s));
    arena_release(&arena);
}
END_TEST

START_TEST(daily_waits_an_hour_after_a_failed_attempt)
{
    struct cadence_state s = { .cadence = CADENCE_DAILY,
                               .every_n_trades = 10,
                               .closed = 1,
                               .has_failed = true,
                               .failed_us = unit_time_us("2026-06-01T23:30:00Z"),
                               .now_us = unit_time_us("2026-06-02T00:29:59.999999Z") };
    ck_assert_str_eq(cadence_decide(&arena, &s).detail,
                     "the attempt at 2026-06-01T23:30:00Z failed; the next one is due an hour later");
    s.now_us++;
    ck_assert(is_due(&s));
    arena_release(&arena);
}
END_TEST

START_TEST(force_overrides_the_cadence_but_needs_a_trade)
{
    static const struct {
        enum cadence cadence;
        bool any_closed, forced;
        const char *reason;
    } cases[] = {
        { CADENCE_OFF, false, false, "cadence_off" }, { CADENCE_OFF, true, false, "cadence_off" },
        { CADENCE_OFF, false, true, "no_trades" },    { CADENCE_OFF, true, true, NULL },
        { CADENCE_DAILY, false, false, "no_trades" }, { CADENCE_DAILY, true, false, "not_due" },
        { CADENCE_DAILY, true, true, NULL },          { CADENCE_PER_N_TRADES, false, true, "no_trades" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cadence_state s = { .cadence = cases[i].cadence, .every_n_trades = 3 };
        const char *reason = cadence_decide_request(&arena, &s, cases[i].any_closed, cases[i].forced).reason;
        ck_assert_pstr_eq(reason, cases[i].reason);
    }
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("cadence", cadences_are_found_by_their_names, without_memory_every_cadence_is_off, off_is_never_due,
          per_n_trades_a_tick_is_due_when_it_completes_a_multiple_of_n,
          per_n_trades_a_request_is_due_from_n_trades_on,
          daily_is_due_on_a_day_other_than_the_notes_once_a_trade_was_closed,
          daily_waits_an_hour_after_a_failed_attempt, force_overrides_the_cadence_but_needs_a_trade)

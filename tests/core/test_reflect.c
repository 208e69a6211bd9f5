/* The built-in reflector: silent on noise, right about planted patterns. */
#include "core/base/utf8.h"
#include "core/reflect/reflect_note.h"
#include "tests/core/golden.h"
#include "tests/core/ledgers.h"

enum { LEDGERS = 1000, TRADES = 120 };

static const char *reflect(struct arena *arena, plant *planted, struct reflect_trade trades[TRADES])
{
    ledger(trades, TRADES, planted);
    struct buf out = { .arena = arena };
    reflect_builtin(&out, trades, TRADES);
    return buf_string(&out);
}

/* The lines of a slot, "" when it makes no claim. */
static const char *slot(struct arena *arena, const char *note, enum reflect_slot which)
{
    const char *start = strstr(note, reflect_slot_headings[which]);
    ck_assert_ptr_nonnull(start);
    start = strchr(start, '\n') + 1;
    const char *end = strstr(start, "\n### ");
    char *lines = arena_copy(arena, start, end ? (size_t)(end - start) : strlen(start));
    return strncmp(lines, reflect_no_pattern, strlen(reflect_no_pattern)) == 0 ? "" : lines;
}

static int count_bullets(const char *lines)
{
    int bullets = 0;
    for (const char *p = lines; (p = strstr(p, "- ")); p++)
        bullets += p == lines || p[-1] == '\n';
    return bullets;
}

/* The reflector writes notes in their stored form. */
static void check_form(struct arena *arena, const char *note)
{
    struct note_checked checked = reflect_note_check(arena, note, NULL, 0, 0);
    HOLDS(checked.verdict == NOTE_GOOD && strcmp(checked.text, note) == 0);
}

START_TEST(noise_yields_no_claims)
{
    int claims[REFLECT_SLOTS] = { 0 }, all = 0;
    struct reflect_trade trades[TRADES];
    chance_state = 3;
    for (int i = 0; i < LEDGERS; i++) {
        struct arena arena = { 0 };
        const char *note = reflect(&arena, nothing, trades);
        check_form(&arena, note);
        for (int s = 0; s < REFLECT_SLOTS; s++)
            claims[s] += slot(&arena, note, (enum reflect_slot)s)[0] != '\0';
        arena_release(&arena);
    }
    for (int s = 0; s < REFLECT_SLOTS; s++) {
        printf("%s: %d of %d ledgers without structure\n", reflect_slot_names[s], claims[s], LEDGERS);
        ck_assert_int_le(claims[s], LEDGERS / 20);
        all += claims[s];
    }
    ck_assert_int_le(all, LEDGERS * REFLECT_SLOTS / 20);
    ck_assert_int_gt(all, 0); /* otherwise it would never make a claim */
}
END_TEST

START_TEST(a_planted_pattern_is_named_in_its_slot)
{
    static const struct {
        plant *planted;
        enum reflect_slot slot;
        const char *words;
    } cases[] = {
        { bad_hour, SLOT_ENTRY_TIMING, "Entries from 14:00 to 14:59 UTC returned -" },
        { dragging_symbol, SLOT_SYMBOL_SELECTION, "DOGE returned -" },
        { gives_back_half, SLOT_EXIT_TIMING, "Winners gave back " },
        { losing_regime, SLOT_REGIME_FIT, "Entries in chop_hivol returned -" },
        { too_large, SLOT_SIZING, "Entries of more than $" },
        { holds_losers, SLOT_EXIT_TIMING, "Losers were held " },
    };
    enum { TIMES = 100 };
    struct reflect_trade trades[TRADES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int named = 0;
        chance_state = 17;
        for (int n = 0; n < TIMES; n++) {
            struct arena arena = { 0 };
            const char *note = reflect(&arena, cases[i].planted, trades);
            check_form(&arena, note);
            named += strstr(slot(&arena, note, cases[i].slot), cases[i].words) != NULL;
            if (n == 0)
                printf("%s", slot(&arena, note, cases[i].slot));
            arena_release(&arena);
        }
        printf("%s: named in %d of %d ledgers\n", reflect_slot_names[cases[i].slot], named, TIMES);
        ck_assert_int_ge(named, TIMES * 8 / 10);
    }
}
END_TEST

START_TEST(a_bad_group_does_not_make_the_others_look_good)
{
    static const struct {
        plant *planted;
        enum reflect_slot slot;
    } cases[] = { { bad_hour, SLOT_ENTRY_TIMING },
                  { dragging_symbol, SLOT_SYMBOL_SELECTION },
                  { losing_regime, SLOT_REGIME_FIT } };
    enum { TIMES = 300 };
    struct reflect_trade trades[TRADES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int more = 0;
        chance_state = 17;
        for (int n = 0; n < TIMES; n++) {
            struct arena arena = { 0 };
            const char *note = reflect(&arena, cases[i].planted, trades);
            more += count_bullets(slot(&arena, note, cases[i].slot)) > 1;
            arena_release(&arena);
        }
        ck_assert_msg(more <= TIMES / 20, "%s: a second claim in %d of %d ledgers",
                      reflect_slot_names[cases[i].slot], more, TIMES);
    }
}
END_TEST

START_TEST(few_trades_yield_no_claims_and_every_slot_is_present)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES];
    (void)reflect(&arena, dragging_symbol, trades);
    struct buf out = { .arena = &arena };
    reflect_builtin(&out, trades, REFLECT_TRADES_MIN - 1);
    ck_assert_str_eq(
        buf_string(&out),
        "### Entry timing\n(no clear pattern yet)\n\n### Sizing\n(no clear pattern yet)\n\n"
        "### Symbol selection\n(no clear pattern yet)\n\n### Exit timing\n(no clear pattern yet)\n\n"
        "### Regime fit\n(no clear pattern yet)\n");
    out.len = 0;
    reflect_builtin(&out, trades, 0);
    ck_assert_ptr_nonnull(strstr(buf_string(&out), "### Regime fit"));
    arena_release(&arena);
}
END_TEST

START_TEST(the_order_of_the_trades_changes_no_byte)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES], turned[TRADES];
    chance_state = 99;
    const char *note = reflect(&arena, losing_regime, trades);
    for (int i = 0; i < TRADES; i++)
        turned[i] = trades[TRADES - 1 - i];
    struct buf out = { .arena = &arena };
    reflect_builtin(&out, turned, TRADES);
    ck_assert_str_eq(buf_string(&out), note);
    ck_assert_uint_le(strlen(note), 2000);
    arena_release(&arena);
}
END_TEST

START_TEST(a_note_is_computed_in_many_small_steps)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES];
    chance_state = 17;
    const char *note = reflect(&arena, bad_hour, trades);
    struct buf out = { .arena = &arena };
    struct reflecting *r = reflect_begin(&out, trades, TRADES);
    int steps = 1;
    while (!reflect_step(r))
        steps++;
    ck_assert_int_gt(steps, 4 * REFLECT_SLOTS);
    ck_assert_str_eq(buf_string(&out), note);
    arena_release(&arena);
}
END_TEST

START_TEST(a_slot_has_at_most_four_bullets_and_untrusted_text_stays_in_its_line)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES];
    static const char *const names[] = {
        "A\n### Sizing", "</lessons>", "- C", "1. \"D\"", "E\u2028E", "# F"
    };
    for (int i = 0; i < TRADES; i++)
        trades[i] = (struct reflect_trade){ .symbol = names[i % 6],
                                            .entry_us = i,
                                            .size_usd = 100,
                                            .net_usd = (i % 6 < 3 ? 10 : -10) + chance(),
                                            .mfe_usd = 10,
                                            .minutes = 5 };
    struct buf out = { .arena = &arena };
    reflect_builtin(&out, trades, TRADES);
    check_form(&arena, buf_string(&out));
    const char *lines = slot(&arena, buf_string(&out), SLOT_SYMBOL_SELECTION);
    ck_assert_int_eq(count_bullets(lines), REFLECT_BULLETS_MAX);
    ck_assert_ptr_null(strstr(lines, "\n###"));
    ck_assert_ptr_null(strchr(lines, '<'));
    arena_release(&arena);
}
END_TEST

/* Even with symbols, regimes and sums of maximum length nothing is truncated. */
START_TEST(the_longest_note_fits)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES];
    const int64_t hour = INT64_C(3600000000);
    for (int i = 0; i < TRADES; i++) {
        const int group = i % 6, edge = 2 * group - 5;
        trades[i] = (struct reflect_trade){
            .symbol = arena_fmt(&arena, "SYMBOL_OF_MANY_CHARACTERS_%d_AND_MANY_MORE_THAT_FOLLOW", group),
            .regime = arena_fmt(&arena, "regime_of_many_characters_%d_and_many_more_that_follow", group),
            .entry_us = group * 25 * hour,
            .size_usd = edge > 0 ? 1000 : 2000 + i,
            .net_usd = edge * 98765.43 + i,
            .mfe_usd = 3e6,
            .minutes = edge > 0 ? 10 : 100000 + i
        };
    }
    struct buf out = { .arena = &arena };
    reflect_builtin(&out, trades, TRADES);
    check_form(&arena, buf_string(&out));
    static const int bullets[REFLECT_SLOTS] = { 4, 1, 4, 2, 4 };
    for (int s = 0; s < REFLECT_SLOTS; s++)
        ck_assert_int_eq(count_bullets(slot(&arena, out.data, (enum reflect_slot)s)), bullets[s]);
    printf("the longest note: %zu characters\n", utf8_count(out.data, out.len));
    arena_release(&arena);
}
END_TEST

/* GOLDEN=rewrite (tests/core/golden.h) rewrites them. */
START_TEST(fixed_ledgers_yield_the_notes_of_the_golden_files)
{
    static const struct {
        const char *file;
        plant *planted;
        int count;
        uint64_t seed;
    } cases[] = {
        { "reflect/builtin_bad_hour.md", bad_hour, TRADES, 17 },
        { "reflect/builtin_dragging_symbol.md", dragging_symbol, TRADES, 5 },
        { "reflect/builtin_gives_back_half.md", gives_back_half, TRADES, 17 },
        { "reflect/builtin_losing_regime.md", losing_regime, TRADES, 5 },
        { "reflect/builtin_too_large.md", too_large, TRADES, 17 },
        { "reflect/builtin_holds_losers.md", holds_losers, TRADES, 17 },
        { "reflect/builtin_noise.md", nothing, TRADES, 17 },
        { "reflect/builtin_too_few.md", dragging_symbol, REFLECT_TRADES_MIN - 1, 17 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = { 0 };
        struct reflect_trade trades[TRADES];
        struct buf out = { .arena = &arena };
        chance_state = cases[i].seed;
        ledger(trades, cases[i].count, cases[i].planted);
        reflect_builtin(&out, trades, (size_t)cases[i].count);
        golden_check(&arena, cases[i].file, buf_string(&out));
        arena_release(&arena);
    }
}
END_TEST

UNIT_MAIN("reflect", noise_yields_no_claims, a_planted_pattern_is_named_in_its_slot,
          a_bad_group_does_not_make_the_others_look_good,
          few_trades_yield_no_claims_and_every_slot_is_present, the_order_of_the_trades_changes_no_byte,
          a_note_is_computed_in_many_small_steps,
          a_slot_has_at_most_four_bullets_and_untrusted_text_stays_in_its_line, the_longest_note_fits,
          fixed_ledgers_yield_the_notes_of_the_golden_files)

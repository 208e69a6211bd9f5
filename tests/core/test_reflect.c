/* The built-in reflector: silent on noise, right about planted patterns. */
#include <math.h>
#include <stdbool.h>

#include "core/reflect.h"
#include "tests/core/unit.h"

enum { LEDGERS = 1000, TRADES = 120, STEPS = 24 };

static uint64_t chance_state;

static double chance(void)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance_state >> 11) / 9007199254740992.0;
}

static int one_of(int count)
{
    return (int)(chance() * count);
}

/* A trade of a price that wanders, left after a random number of steps. */
static struct reflect_trade wander(void)
{
    static const char *const symbols[] = { "BTC", "ETH", "SOL", "XRP", "DOGE" };
    static const char *const regimes[] = { "trend_up_lowvol", "trend_down_hivol", "chop_lowvol",
                                           "chop_hivol" };
    static const double sizes[] = { 250, 500, 1000, 2000 };
    struct reflect_trade t = { .symbol = symbols[one_of(5)],
                               .regime = regimes[one_of(4)],
                               .size_usd = sizes[one_of(4)] };
    t.entry_us = INT64_C(1780000000000000) + one_of(90 * 24 * 60) * INT64_C(60000000);
    int steps = 4 + one_of(STEPS);
    double at = 0, best = 0;
    for (int i = 0; i < steps; i++) {
        at += (chance() + chance() + chance() - 1.5) * 0.01;
        best = at > best ? at : best;
    }
    t.net_usd = at * t.size_usd;
    t.mfe_usd = best * t.size_usd;
    t.minutes = 10 * steps;
    return t;
}

typedef void plant(struct reflect_trade *t);

static void nothing(struct reflect_trade *t)
{
    (void)t;
}

static const char *reflect(struct arena *arena, plant *planted, struct reflect_trade trades[TRADES])
{
    for (int i = 0; i < TRADES; i++) {
        trades[i] = wander();
        planted(&trades[i]);
    }
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

START_TEST(noise_yields_no_claims)
{
    int claims[REFLECT_SLOTS] = { 0 }, all = 0;
    struct reflect_trade trades[TRADES];
    chance_state = 3;
    for (int i = 0; i < LEDGERS; i++) {
        struct arena arena = { 0 };
        const char *note = reflect(&arena, nothing, trades);
        for (int s = 0; s < REFLECT_SLOTS; s++)
            claims[s] += slot(&arena, note, (enum reflect_slot)s)[0] != '\0';
        arena_release(&arena);
    }
    for (int s = 0; s < REFLECT_SLOTS; s++) {
        printf("%s: %d of %d ledgers without structure\n", reflect_slot_names[s], claims[s], LEDGERS);
        all += claims[s];
    }
    ck_assert_int_le(all, LEDGERS * REFLECT_SLOTS / 20);
}
END_TEST

static void bad_hour(struct reflect_trade *t)
{
    const int64_t hour = INT64_C(3600000000);
    if (chance() < 0.2)
        t->entry_us = t->entry_us / (24 * hour) * (24 * hour) + 14 * hour + 30 * INT64_C(60000000);
    if (t->entry_us / hour % 24 == 14)
        t->net_usd -= 0.04 * t->size_usd;
}

static void dragging_symbol(struct reflect_trade *t)
{
    if (strcmp(t->symbol, "DOGE") == 0)
        t->net_usd -= 0.03 * t->size_usd;
}

static void gives_back_half(struct reflect_trade *t)
{
    if (t->net_usd > 0)
        t->mfe_usd = t->net_usd / (0.4 + 0.2 * chance());
}

static void losing_regime(struct reflect_trade *t)
{
    if (strcmp(t->regime, "chop_hivol") == 0)
        t->net_usd -= 0.03 * t->size_usd;
}

static void too_large(struct reflect_trade *t)
{
    if (t->size_usd > 900)
        t->net_usd -= 0.03 * t->size_usd;
}

static void holds_losers(struct reflect_trade *t)
{
    if (t->net_usd < 0)
        t->minutes *= 4;
}

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

START_TEST(few_trades_make_no_claim_and_every_slot_is_there)
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

START_TEST(at_most_four_bullets_a_slot_and_foreign_text_stays_in_its_line)
{
    struct arena arena = { 0 };
    struct reflect_trade trades[TRADES];
    static const char *const names[] = { "A\n### Sizing", "B", "C", "D", "E", "F" };
    for (int i = 0; i < TRADES; i++)
        trades[i] = (struct reflect_trade){ .symbol = names[i % 6],
                                            .entry_us = i,
                                            .size_usd = 100,
                                            .net_usd = (i % 6 < 3 ? 10 : -10) + chance(),
                                            .mfe_usd = 10,
                                            .minutes = 5 };
    struct buf out = { .arena = &arena };
    reflect_builtin(&out, trades, TRADES);
    const char *lines = slot(&arena, buf_string(&out), SLOT_SYMBOL_SELECTION);
    int bullets = 0;
    for (const char *p = lines; (p = strstr(p, "- ")); p++)
        bullets += p == lines || p[-1] == '\n';
    ck_assert_int_eq(bullets, REFLECT_BULLETS_MAX);
    ck_assert_ptr_null(strstr(lines, "\n###"));
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("reflect", noise_yields_no_claims, a_planted_pattern_is_named_in_its_slot,
          few_trades_make_no_claim_and_every_slot_is_there, the_order_of_the_trades_changes_no_byte,
          at_most_four_bullets_a_slot_and_foreign_text_stays_in_its_line)

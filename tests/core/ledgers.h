/* Ledgers of trades on a random-walk price, the same on every machine, with or without a planted pattern. */
#ifndef DAYBOOK_TESTS_CORE_LEDGERS_H
#define DAYBOOK_TESTS_CORE_LEDGERS_H

#include <string.h>

#include "core/reflect/reflect.h"

enum { STEPS = 24 };

static uint64_t chance_state;

static inline double chance(void)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(chance_state >> 11) / 9007199254740992.0;
}

static inline int one_of(int count)
{
    return (int)(chance() * count);
}

/* A trade on a random-walk price, closed after a random number of steps. */
static inline struct reflect_trade wander(void)
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

/* ---- patterns ---- */

typedef void plant(struct reflect_trade *t);

static inline void nothing(struct reflect_trade *t)
{
    (void)t;
}

static inline void bad_hour(struct reflect_trade *t)
{
    const int64_t hour = INT64_C(3600000000);
    if (chance() < 0.2)
        t->entry_us = t->entry_us / (24 * hour) * (24 * hour) + 14 * hour + 30 * INT64_C(60000000);
    if (t->entry_us / hour % 24 == 14)
        t->net_usd -= 0.04 * t->size_usd;
}

static inline void dragging_symbol(struct reflect_trade *t)
{
    if (strcmp(t->symbol, "DOGE") == 0)
        t->net_usd -= 0.03 * t->size_usd;
}

static inline void gives_back_half(struct reflect_trade *t)
{
    if (t->net_usd > 0)
        t->mfe_usd = t->net_usd / (0.4 + 0.2 * chance());
}

static inline void losing_regime(struct reflect_trade *t)
{
    if (strcmp(t->regime, "chop_hivol") == 0)
        t->net_usd -= 0.03 * t->size_usd;
}

static inline void too_large(struct reflect_trade *t)
{
    if (t->size_usd > 900)
        t->net_usd -= 0.03 * t->size_usd;
}

static inline void holds_losers(struct reflect_trade *t)
{
    if (t->net_usd < 0)
        t->minutes *= 4;
}

static inline void ledger(struct reflect_trade *trades, int count, plant *planted)
{
    for (int i = 0; i < count; i++) {
        trades[i] = wander();
        planted(&trades[i]);
        trades[i].exit_us = trades[i].entry_us + (int64_t)trades[i].minutes * INT64_C(60000000);
    }
}

#endif

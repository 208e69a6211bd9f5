/* The slots of the built-in reflector: how trades are grouped, and the statistics of exits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/line_text.h"
#include "core/base/time_text.h"
#include "core/base/untagged.h"
#include "core/reflect/reflect_internal.h"

enum { SYMBOL_CHARS = 32, HOURS = 24, WEEKDAYS = 7 };

/* ---- groups ---- */

/* Its p-value is computed later. */
static struct claim *look(struct ledger *l, struct claims *all, const int *marks, int group)
{
    struct claim c = { .marks = marks, .group = group };
    if (all->count == REFLECT_GROUPS_MAX || !reflect_gather(l, &c))
        return NULL;
    all->items[all->count] = c;
    return &all->items[all->count++];
}

/* 1970-01-01 was a Thursday. */
static void entry_timing(struct ledger *l, struct claims *all)
{
    static const char *const days[] = { "Thursdays", "Fridays",  "Saturdays", "Sundays",
                                        "Mondays",   "Tuesdays", "Wednesdays" };
    int *hours = arena_alloc(l->arena, (l->count + 1) * sizeof *hours);
    int *weekdays = arena_alloc(l->arena, (l->count + 1) * sizeof *weekdays);
    for (size_t i = 0; i < l->count; i++) {
        const int64_t us = l->trades[i]->entry_us, hour = INT64_C(3600000000), day = time_text_day(us);
        hours[i] = (int)((us - day * HOURS * hour) / hour);
        weekdays[i] = (int)((day % WEEKDAYS + WEEKDAYS) % WEEKDAYS);
    }
    for (int hour = 0; hour < HOURS; hour++) {
        struct claim *c = look(l, all, hours, hour);
        if (c)
            c->words = arena_fmt(l->arena, "Entries from %02d:00 to %02d:59 UTC returned", hour, hour);
    }
    for (int day = 0; day < WEEKDAYS; day++) {
        struct claim *c = look(l, all, weekdays, day);
        if (c)
            c->words = arena_fmt(l->arena, "Entries on %s returned", days[day]);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sizing(struct ledger *l, struct claims *all)
{
    int *larger = arena_alloc(l->arena, (l->count + 1) * sizeof *larger);
    for (size_t i = 0; i < l->count; i++)
        l->scratch[i] = l->trades[i]->size_usd;
    qsort(l->scratch, l->count, sizeof *l->scratch, by_value);
    const double middle = l->scratch[l->count / 2];
    for (size_t i = 0; i < l->count; i++)
        larger[i] = l->trades[i]->size_usd > middle;
    struct claim *c = look(l, all, larger, 1);
    if (c)
        c->words = arena_fmt(l->arena, "Entries of more than $%.2f returned", middle);
}

typedef const char *text_of(const struct reflect_trade *t);

static const char *symbol_of(const struct reflect_trade *t)
{
    return t->symbol;
}

static const char *regime_of(const struct reflect_trade *t)
{
    return t->regime;
}

/* A group for each text, in order of first occurrence. Its words are `before`, the text and `after`. */
static void by_text(struct ledger *l, struct claims *all, text_of *text, const char *before,
                    const char *after)
{
    int *marks = arena_alloc(l->arena, (l->count + 1) * sizeof *marks);
    const char **texts = arena_alloc(l->arena, (l->count + 1) * sizeof *texts);
    int groups = 0;
    for (size_t i = 0; i < l->count; i++) {
        const char *own = text(l->trades[i]);
        marks[i] = 0;
        while (own && marks[i] < groups && strcmp(texts[marks[i]], own) != 0)
            marks[i]++;
        if (!own)
            marks[i] = -1;
        else if (marks[i] == groups)
            texts[groups++] = own;
    }
    for (int group = 0; group < groups; group++) {
        struct claim *c = look(l, all, marks, group);
        if (!c)
            continue;
        struct buf name = { .arena = l->arena }, words = { .arena = l->arena };
        line_text(&name, texts[group], SYMBOL_CHARS);
        buf_text(&words, before);
        untagged_text(&words, buf_string(&name));
        buf_text(&words, after);
        c->words = buf_string(&words);
        c->shows_total = true;
    }
}

static void symbols(struct ledger *l, struct claims *all)
{
    by_text(l, all, symbol_of, "Trades in ", " returned");
}

static void regimes(struct ledger *l, struct claims *all)
{
    by_text(l, all, regime_of, "Entries in ", " returned");
}

/* ---- exits ---- */

/* The probability of at most `count` heads in `tosses` of a fair coin. */
static double coin_p(size_t count, size_t tosses)
{
    double p = 0, way = -(double)tosses * log(2); /* the logarithm of one outcome */
    for (size_t i = 0; i <= count; i++) {
        p += exp(way);
        way += log((double)(tosses - i)) - log((double)(i + 1));
    }
    return p < 1 ? p : 1;
}

/* If the price is a random walk and the exit is independent of it, a trade that ends in profit keeps the
 * share x of its best mark with the density 2 / (2 - x)^2: more than two thirds in half of the cases, 0.61 on
 * average. Winners that keep less were exited late. */
static const double random_half = 2.0 / 3, random_mean = 0.61;

size_t reflect_slots_put_capture(struct buf *out, const struct ledger *l)
{
    size_t winners = 0, above = 0;
    double kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct reflect_trade *t = l->trades[i];
        if (t->net_usd <= 0 || t->mfe_usd <= 0)
            continue;
        double share = fmin(1, t->net_usd / t->mfe_usd);
        winners++;
        above += share > random_half;
        kept += share;
    }
    if (winners < REFLECT_GROUP_MIN || coin_p(above, winners) >= reflect_claim_p / 2 ||
        kept / (double)winners > random_mean - 0.05)
        return 0;
    buf_fmt(out,
            "- Winners gave back %.0f%% of their best mark and kept %.2f of it (n=%zu); exits at random "
            "would keep %.2f.\n",
            100 * (1 - kept / (double)winners), kept / (double)winners, winners, random_mean);
    return 1;
}

bool reflect_slots_gather_held(struct ledger *l, struct claim *held)
{
    *held = (struct claim){ 0 };
    for (size_t i = 0; i < l->count; i++)
        if (l->trades[i]->net_usd > 0)
            l->in[held->count++] = l->trades[i]->minutes;
        else
            l->out[held->other_count++] = l->trades[i]->minutes;
    if (held->count < REFLECT_GROUP_MIN || held->other_count < REFLECT_GROUP_MIN)
        return false;
    held->value = reflect_mean(l->in, held->count);
    held->other_value = reflect_mean(l->out, held->other_count);
    return true;
}

size_t reflect_slots_put_held(struct buf *out, const struct claim *held)
{
    if (held->other_value < 1.5 * held->value || held->p >= reflect_claim_p / 2)
        return 0;
    buf_fmt(out, "- Losers were held %.0f minutes on average (n=%zu), winners %.0f (n=%zu).\n",
            held->other_value, held->other_count, held->value, held->count);
    return 1;
}

reflect_finder *const reflect_finders[REFLECT_SLOTS] = {
    [SLOT_ENTRY_TIMING] = entry_timing,
    [SLOT_SIZING] = sizing,
    [SLOT_SYMBOL_SELECTION] = symbols,
    [SLOT_REGIME_FIT] = regimes,
};

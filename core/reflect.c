/* The built-in reflector: each slot looks for groups of trades that came out differently from the others. */
#include "core/reflect.h"

#include <math.h>
#include <stdlib.h>

#include "core/ab.h"
#include "core/line_text.h"
#include "core/money_text.h"
#include "core/time_text.h"

enum { SYMBOL_CHARS = 64, HOURS = 24, WEEKDAYS = 7, GROUPS_MAX = 256 };

static const double claim_p = 0.04;     /* of a slot, corrected for the number of looks */
static const double claim_effect = 0.3; /* in standard deviations of all trades: less is true but no lesson */

const char *const reflect_slot_names[] = { "entry_timing", "sizing",     "symbol_selection",
                                           "exit_timing",  "regime_fit", NULL };
const char *const reflect_slot_headings[] = { "### Entry timing", "### Sizing",     "### Symbol selection",
                                              "### Exit timing",  "### Regime fit", NULL };
const char reflect_no_pattern[] = "(no clear pattern yet)";

/* ---- the ledger ---- */

struct ledger {
    struct arena *arena;
    const struct reflect_trade **trades;
    size_t count;
    double *returns; /* net PnL by size, in percent */
    double deviation;
    double *in, *out, *scratch; /* a group, the others, and room for both */
};

static int by_content(const void *a, const void *b)
{
    const struct reflect_trade *x = *(const struct reflect_trade *const *)a,
                               *y = *(const struct reflect_trade *const *)b;
    if (x->entry_us != y->entry_us)
        return x->entry_us < y->entry_us ? -1 : 1;
    int symbol = strcmp(x->symbol, y->symbol);
    return symbol ? symbol : (x->net_usd > y->net_usd) - (x->net_usd < y->net_usd);
}

static struct ledger ledger_of(struct arena *arena, const struct reflect_trade *trades, size_t count)
{
    struct ledger l = { .arena = arena, .trades = arena_alloc(arena, (count + 1) * sizeof *l.trades) };
    for (size_t i = 0; i < count; i++)
        if (trades[i].size_usd > 0)
            l.trades[l.count++] = &trades[i];
    if (l.count)
        qsort(l.trades, l.count, sizeof *l.trades, by_content);
    double *room = arena_alloc(arena, (5 * l.count + 1) * sizeof *room), sum = 0, squares = 0;
    l.returns = room;
    l.in = room + l.count;
    l.out = room + 2 * l.count;
    l.scratch = room + 3 * l.count;
    for (size_t i = 0; i < l.count; i++) {
        l.returns[i] = 100 * l.trades[i]->net_usd / l.trades[i]->size_usd;
        sum += l.returns[i];
        squares += l.returns[i] * l.returns[i];
    }
    const double n = (double)l.count;
    l.deviation = l.count > 1 ? sqrt(fmax(0, squares / n - sum / n * (sum / n))) : 0;
    return l;
}

static double mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* ---- claims ---- */

/* A group of trades against all others. */
struct claim {
    const char *words; /* what stands before the numbers */
    const char *unit;
    size_t count, other_count;
    double value, other_value, total_usd, p, effect;
    bool shows_total;
};

struct claims {
    struct claim items[GROUPS_MAX];
    size_t count;
};

/* Looks at the trades whose mark is `group`; too few, on either side, are not looked at. */
static struct claim *look(struct ledger *l, struct claims *all, const int *marks, int group)
{
    size_t in = 0, out = 0;
    double total = 0;
    for (size_t i = 0; i < l->count; i++) {
        bool is_in = marks[i] == group;
        *(is_in ? &l->in[in++] : &l->out[out++]) = l->returns[i];
        total += is_in ? l->trades[i]->net_usd : 0;
    }
    if (in < REFLECT_GROUP_MIN || out < REFLECT_GROUP_MIN || all->count == GROUPS_MAX || l->deviation <= 0)
        return NULL;
    struct claim *c = &all->items[all->count++];
    *c = (struct claim){ .count = in,
                         .other_count = out,
                         .value = mean(l->in, in),
                         .other_value = mean(l->out, out),
                         .total_usd = total };
    c->effect = fabs(c->value - c->other_value) / l->deviation;
    c->p = ab_difference_p(l->in, in, l->out, out, ab_seed(l->in, in, ab_seed(l->out, out, 0)), l->scratch);
    return c;
}

static int by_effect(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->effect != y->effect)
        return x->effect > y->effect ? -1 : 1;
    return strcmp(x->words, y->words);
}

static void put_claim(struct buf *out, const struct claim *c)
{
    buf_fmt(out, "- %s %+.2f%% of size on average", c->words, c->value);
    if (c->shows_total)
        buf_fmt(out, ", %s$%.2f in all", c->total_usd < 0 ? "-" : "+", fabs(c->total_usd));
    buf_fmt(out, " (n=%zu), the others %+.2f%% (n=%zu).\n", c->count, c->other_value, c->other_count);
}

/* Those that are neither chance nor too small, largest first. */
static size_t put_claims(struct buf *out, struct claims *all, size_t most)
{
    double p[GROUPS_MAX], scratch[2 * GROUPS_MAX];
    size_t put = 0;
    for (size_t i = 0; i < all->count; i++)
        p[i] = all->items[i].p;
    ab_correct(p, all->count, scratch);
    for (size_t i = 0; i < all->count; i++)
        all->items[i].p = p[i];
    if (all->count)
        qsort(all->items, all->count, sizeof all->items[0], by_effect);
    for (size_t i = 0; i < all->count && put < most; i++)
        if (all->items[i].p < claim_p && all->items[i].effect >= claim_effect) {
            put_claim(out, &all->items[i]);
            put++;
        }
    return put;
}

/* ---- slots ---- */

/* 1970-01-01 was a Thursday. */
static void entry_timing(struct ledger *l, struct claims *all)
{
    static const char *const days[] = { "Thursdays", "Fridays",  "Saturdays", "Sundays",
                                        "Mondays",   "Tuesdays", "Wednesdays" };
    int *hours = arena_alloc(l->arena, (l->count + 1) * sizeof *hours);
    int *weekdays = arena_alloc(l->arena, (l->count + 1) * sizeof *weekdays);
    for (size_t i = 0; i < l->count; i++) {
        const int64_t us = l->trades[i]->entry_us, hour = INT64_C(3600000000), day = time_day(us);
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

/* A group for each text, in the order in which they come first; `before` and `behind` stand around it. */
static void by_text(struct ledger *l, struct claims *all, text_of *text, const char *before,
                    const char *behind)
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
        struct buf words = { .arena = l->arena };
        buf_text(&words, before);
        line_text(&words, texts[group], SYMBOL_CHARS);
        buf_text(&words, behind);
        c->words = buf_string(&words);
        c->shows_total = true;
    }
}

static void symbols(struct ledger *l, struct claims *all)
{
    by_text(l, all, symbol_of, "", " returned");
}

static void regimes(struct ledger *l, struct claims *all)
{
    by_text(l, all, regime_of, "Entries in ", " returned");
}

/* How probable `count` or fewer heads of `tosses` are with a fair coin. */
static double coin_p(size_t count, size_t tosses)
{
    double p = 0, way = -(double)tosses * log(2); /* the logarithm of one outcome */
    for (size_t i = 0; i <= count; i++) {
        p += exp(way);
        way += log((double)(tosses - i)) - log((double)(i + 1));
    }
    return p < 1 ? p : 1;
}

/* A price that wanders without direction and is left at a moment that has nothing to do with it, in profit,
 * keeps the share x of its best mark with the density 2 / (2 - x)^2: more than two thirds in half of the
 * cases, 0.61 on average. Winners that keep less were left late. */
static const double random_half = 2.0 / 3, random_mean = 0.61;

static size_t put_kept(struct buf *out, const struct ledger *l)
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
    if (winners < REFLECT_GROUP_MIN || coin_p(above, winners) >= claim_p / 2 ||
        kept / (double)winners > random_mean - 0.05)
        return 0;
    buf_fmt(out,
            "- Winners gave back %.0f%% of their best mark and kept %.2f of it (n=%zu); exits at random "
            "would keep %.2f.\n",
            100 * (1 - kept / (double)winners), kept / (double)winners, winners, random_mean);
    return 1;
}

/* Losers that are held longer than winners, by what both were held. */
static size_t put_held(struct buf *out, struct ledger *l)
{
    size_t won = 0, lost = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->trades[i]->net_usd > 0)
            l->in[won++] = l->trades[i]->minutes;
        else
            l->out[lost++] = l->trades[i]->minutes;
    if (won < REFLECT_GROUP_MIN || lost < REFLECT_GROUP_MIN)
        return 0;
    const double winners = mean(l->in, won), losers = mean(l->out, lost);
    const double p =
        ab_difference_p(l->in, won, l->out, lost, ab_seed(l->in, won, ab_seed(l->out, lost, 1)), l->scratch);
    if (losers < 1.5 * winners || p >= claim_p / 2)
        return 0;
    buf_fmt(out, "- Losers were held %.0f minutes on average (n=%zu), winners %.0f (n=%zu).\n", losers, lost,
            winners, won);
    return 1;
}

typedef void find_groups(struct ledger *l, struct claims *all);

static find_groups *const finders[REFLECT_SLOTS] = {
    [SLOT_ENTRY_TIMING] = entry_timing,
    [SLOT_SIZING] = sizing,
    [SLOT_SYMBOL_SELECTION] = symbols,
    [SLOT_REGIME_FIT] = regimes,
};

static size_t put_slot(struct buf *out, struct ledger *l, enum reflect_slot slot)
{
    if (l->count < REFLECT_TRADES_MIN)
        return 0;
    if (!finders[slot])
        return put_kept(out, l) + put_held(out, l);
    struct claims *all = arena_alloc(l->arena, sizeof *all);
    all->count = 0;
    finders[slot](l, all);
    return put_claims(out, all, REFLECT_BULLETS_MAX);
}

void reflect_builtin(struct buf *out, const struct reflect_trade *trades, size_t count)
{
    struct ledger l = ledger_of(out->arena, trades, count);
    for (int slot = 0; slot < REFLECT_SLOTS; slot++) {
        buf_fmt(out, "%s%s\n", slot ? "\n" : "", reflect_slot_headings[slot]);
        if (put_slot(out, &l, (enum reflect_slot)slot) == 0)
            buf_fmt(out, "%s\n", reflect_no_pattern);
    }
}

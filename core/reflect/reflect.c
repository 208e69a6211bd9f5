/* The built-in reflector: each slot looks for groups of trades whose results differ from the others. */
#include "core/reflect/reflect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ab/ab.h"
#include "core/reflect/reflect_internal.h"

/* In standard deviations of all trades. A smaller difference is not worth a lesson. */
static const double claim_effect = 0.3;

const char *const reflect_slot_names[] = { "entry_timing", "sizing",     "symbol_selection",
                                           "exit_timing",  "regime_fit", NULL };
const char *const reflect_slot_headings[] = { "### Entry timing", "### Sizing",     "### Symbol selection",
                                              "### Exit timing",  "### Regime fit", NULL };
const char reflect_no_pattern[] = "(no clear pattern yet)";

/* ---- the ledger ---- */

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
    l.claimed = arena_alloc(arena, l.count + 1);
    for (size_t i = 0; i < l.count; i++) {
        l.returns[i] = 100 * l.trades[i]->net_usd / l.trades[i]->size_usd;
        sum += l.returns[i];
        squares += l.returns[i] * l.returns[i];
    }
    const double n = (double)l.count;
    l.deviation = l.count > 1 ? sqrt(fmax(0, squares / n - sum / n * (sum / n))) : 0;
    return l;
}

/* ---- claims ---- */

double reflect_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

bool reflect_gather(struct ledger *l, struct claim *c)
{
    size_t in = 0, out = 0;
    double total = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (l->claimed[i])
            continue;
        bool is_in = c->marks[i] == c->group;
        *(is_in ? &l->in[in++] : &l->out[out++]) = l->returns[i];
        total += is_in ? l->trades[i]->net_usd : 0;
    }
    if (in < REFLECT_GROUP_MIN || out < REFLECT_GROUP_MIN || l->deviation <= 0)
        return false;
    c->count = in;
    c->other_count = out;
    c->value = reflect_mean(l->in, in);
    c->other_value = reflect_mean(l->out, out);
    c->total_usd = total;
    c->effect = fabs(c->value - c->other_value) / l->deviation;
    return true;
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

static bool is_significant(const struct claim *c)
{
    return c->p < reflect_claim_p && c->effect >= claim_effect;
}

static void mark_claimed(struct ledger *l, const struct claim *c)
{
    for (size_t i = 0; i < l->count; i++)
        l->claimed[i] = l->claimed[i] || c->marks[i] == c->group;
}

/* Corrects the p-values for the number of comparisons, and sorts the claims by effect, largest first. */
static void rank_claims(struct claims *all)
{
    double p[REFLECT_GROUPS_MAX], scratch[2 * REFLECT_GROUPS_MAX];
    for (size_t i = 0; i < all->count; i++)
        p[i] = all->items[i].p;
    ab_correct(p, all->count, scratch);
    for (size_t i = 0; i < all->count; i++)
        all->items[i].p = p[i];
    if (all->count)
        qsort(all->items, all->count, sizeof all->items[0], by_effect);
}

/* ---- steps ---- */

struct reflecting {
    struct buf *out;
    struct ledger ledger;
    int slot;
    bool (*next)(struct reflecting *r); /* the next step of the slot; true: it was the last */
    struct claims *all;
    size_t at, put; /* the current claim, and how many were written */
    struct claim rest;
    struct ab_difference difference;
    bool testing;
};

/* The next step of computing the p-value of the gathered groups; true: it is done. */
static bool test_step(struct reflecting *r, struct claim *c, uint64_t seed)
{
    struct ledger *l = &r->ledger;
    if (!r->testing)
        ab_difference_begin(&r->difference, l->in, c->count, l->out, c->other_count,
                            ab_seed(l->in, c->count, ab_seed(l->out, c->other_count, seed)), l->scratch);
    r->testing = !ab_difference_step(&r->difference);
    c->p = r->difference.p;
    return !r->testing;
}

static void make_claim(struct reflecting *r, const struct claim *c)
{
    put_claim(r->out, c);
    mark_claimed(&r->ledger, c);
    r->put++;
}

/* Compared with a group that lost much, any other group looks good. So a further claim must also hold without
 * the trades of earlier claims, corrected for the remaining comparisons. */
static bool still_holds(const struct reflecting *r, const struct claim *c)
{
    struct claim rest = r->rest;
    rest.p *= (double)(r->all->count - r->put);
    return is_significant(&rest) && (rest.value > rest.other_value) == (c->value > c->other_value);
}

/* Writes the claims that are neither chance nor too small. */
static bool claim_next(struct reflecting *r)
{
    if (r->at == r->all->count || r->put == REFLECT_BULLETS_MAX)
        return true;
    const struct claim *c = &r->all->items[r->at];
    if (is_significant(c) && !r->put)
        make_claim(r, c);
    else if (is_significant(c)) {
        if (!r->testing)
            r->rest = *c;
        if (r->testing || reflect_gather(&r->ledger, &r->rest)) {
            if (!test_step(r, &r->rest, 0))
                return false;
            if (still_holds(r, c))
                make_claim(r, c);
        }
    }
    r->at++;
    return false;
}

static bool look_next(struct reflecting *r)
{
    if (r->at == r->all->count) {
        rank_claims(r->all);
        r->at = 0;
        r->next = claim_next;
        return false;
    }
    struct claim *c = &r->all->items[r->at];
    if (!r->testing)
        (void)reflect_gather(&r->ledger, c); /* the finder has checked that there are enough */
    r->at += test_step(r, c, 0);
    return false;
}

static bool held_next(struct reflecting *r)
{
    if (!test_step(r, &r->rest, 1))
        return false;
    r->put += reflect_slots_put_held(r->out, &r->rest);
    return true;
}

static void begin_slot(struct reflecting *r)
{
    struct ledger *l = &r->ledger;
    r->at = r->put = 0;
    r->next = NULL;
    if (l->count < REFLECT_TRADES_MIN)
        return;
    if (!reflect_finders[r->slot]) {
        r->put = reflect_slots_put_capture(r->out, l);
        r->next = reflect_slots_gather_held(l, &r->rest) ? held_next : NULL;
        return;
    }
    r->all->count = 0;
    memset(l->claimed, 0, l->count);
    reflect_finders[r->slot](l, r->all);
    r->next = look_next;
}

struct reflecting *reflect_begin(struct buf *out, const struct reflect_trade *trades, size_t count)
{
    struct reflecting *r = arena_zero(out->arena, sizeof *r);
    r->out = out;
    r->ledger = ledger_of(out->arena, trades, count);
    r->all = arena_alloc(out->arena, sizeof *r->all);
    return r;
}

bool reflect_step(struct reflecting *r)
{
    if (!r->next) {
        buf_fmt(r->out, "%s%s\n", r->slot ? "\n" : "", reflect_slot_headings[r->slot]);
        begin_slot(r);
    }
    if (r->next && !r->next(r))
        return false;
    r->next = NULL;
    if (!r->put)
        buf_fmt(r->out, "%s\n", reflect_no_pattern);
    return ++r->slot == REFLECT_SLOTS;
}

void reflect_builtin(struct buf *out, const struct reflect_trade *trades, size_t count)
{
    struct reflecting *r = reflect_begin(out, trades, count);
    while (!reflect_step(r))
        ;
}

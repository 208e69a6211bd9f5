/* The statistics of a ledger as lines of a prompt. */
#include "core/reflect/reflect_summary.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/time_text.h"
#include "core/base/untagged.h"

enum { BLOCK_HOURS = 4, BLOCKS = 24 / BLOCK_HOURS };

/* ---- numbers ---- */

/* "+", "-", or "" for a value that two decimals show as zero. */
static const char *sign(double value)
{
    return fabs(value) < 0.005 ? "" : value < 0 ? "-" : "+";
}

void reflect_summary_put_usd(struct buf *out, double usd)
{
    buf_fmt(out, "%s$%.2f", *sign(usd) == '-' ? "-" : "", fabs(usd));
}

void reflect_summary_put_change(struct buf *out, double usd)
{
    buf_fmt(out, "%s$%.2f", sign(usd), fabs(usd));
}

void reflect_summary_put_percent(struct buf *out, double percent)
{
    buf_fmt(out, "%s%.2f%%", sign(percent), fabs(percent));
}

/* ---- groups ---- */

struct tally {
    const char *key; /* NULL: not known */
    size_t count, won, sized;
    double net_usd, returns;
};

static void tally_add(struct tally *t, const struct reflect_trade *trade)
{
    t->count++;
    t->won += trade->net_usd > 0;
    t->net_usd += trade->net_usd;
    if (trade->size_usd > 0) {
        t->sized++;
        t->returns += 100 * trade->net_usd / trade->size_usd;
    }
}

static void tally_join(struct tally *t, const struct tally *other)
{
    t->count += other->count;
    t->won += other->won;
    t->sized += other->sized;
    t->net_usd += other->net_usd;
    t->returns += other->returns;
}

static void put_tally(struct buf *out, const struct tally *t)
{
    buf_fmt(out, ": n=%zu, won %.1f%%, net ", t->count, 100 * (double)t->won / (double)t->count);
    reflect_summary_put_change(out, t->net_usd);
    if (t->sized) {
        buf_text(out, ", mean return on size ");
        reflect_summary_put_percent(out, t->returns / (double)t->sized);
    }
    buf_char(out, '\n');
}

typedef const char *key_of(const struct reflect_trade *t);

static const char *symbol_of(const struct reflect_trade *t)
{
    return t->symbol;
}

static const char *regime_of(const struct reflect_trade *t)
{
    return t->regime;
}

/* NULL comes last. */
static int compare_keys(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : !a - !b;
}

struct keyed {
    const char *key;
    const struct reflect_trade *trade;
};

/* Trades with the same key keep their order, because floating-point sums depend on it. */
static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    const int keys = compare_keys(x->key, y->key);
    return keys ? keys : (x->trade > y->trade) - (x->trade < y->trade);
}

static int by_count(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return compare_keys(x->key, y->key);
}

static size_t tallies_of(struct arena *arena, const struct reflect_trade *trades, size_t count, key_of *key,
                         struct tally *tallies)
{
    struct keyed *sorted = arena_alloc(arena, (count + 1) * sizeof *sorted);
    size_t groups = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct keyed){ key(&trades[i]), &trades[i] };
    qsort(sorted, count, sizeof *sorted, by_key);
    for (size_t i = 0; i < count; i++) {
        if (!groups || compare_keys(tallies[groups - 1].key, sorted[i].key) != 0)
            tallies[groups++] = (struct tally){ .key = sorted[i].key };
        tally_add(&tallies[groups - 1], sorted[i].trade);
    }
    qsort(tallies, groups, sizeof *tallies, by_count);
    return groups;
}

static void put_groups(struct buf *out, const struct reflect_trade *trades, size_t count, key_of *key,
                       size_t most)
{
    struct tally *tallies = arena_alloc(out->arena, count * sizeof *tallies), rest = { 0 };
    const size_t groups = tallies_of(out->arena, trades, count, key, tallies);
    for (size_t i = 0; i < groups; i++) {
        if (i >= most) {
            tally_join(&rest, &tallies[i]);
            continue;
        }
        buf_text(out, "- ");
        if (tallies[i].key)
            untagged_quoted(out, tallies[i].key, REFLECT_SYMBOL_MAX);
        else
            buf_text(out, "not known");
        put_tally(out, &tallies[i]);
    }
    if (groups > most) {
        buf_fmt(out, "- %zu others", groups - most);
        put_tally(out, &rest);
    }
}

static void put_hours(struct buf *out, const struct reflect_trade *trades, size_t count)
{
    struct tally blocks[BLOCKS] = { 0 };
    const int64_t hour = INT64_C(3600000000);
    for (size_t i = 0; i < count; i++) {
        const int64_t of_day = trades[i].entry_us - time_text_day(trades[i].entry_us) * 24 * hour;
        tally_add(&blocks[of_day / hour / BLOCK_HOURS], &trades[i]);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].count) {
            buf_fmt(out, "- %02d:00 to %02d:59", i * BLOCK_HOURS, (i + 1) * BLOCK_HOURS - 1);
            put_tally(out, &blocks[i]);
        }
}

/* ---- exits ---- */

/* Uses the PnL before fees, because marks do not contain fees. */
static void put_captured(struct buf *out, const struct reflect_trade *trades, size_t count)
{
    size_t winners = 0;
    double kept = 0, gross_usd = 0, mfe_usd = 0;
    for (size_t i = 0; i < count; i++) {
        const double gross = trades[i].net_usd + trades[i].fees_usd;
        if (trades[i].mfe_usd <= 0)
            continue;
        gross_usd += gross;
        mfe_usd += trades[i].mfe_usd;
        if (gross > 0) {
            winners++;
            kept += fmin(1, gross / trades[i].mfe_usd);
        }
    }
    if (winners)
        buf_fmt(out, "- captured MFE: winners kept %.2f of their best mark on average (n=%zu)\n",
                kept / (double)winners, winners);
    if (mfe_usd > 0) {
        const double all = gross_usd / mfe_usd;
        buf_fmt(out, "- captured MFE of all trades together: %.2f\n", fabs(all) < 0.005 ? 0 : all);
    }
}

void reflect_summary(struct buf *out, const struct reflect_trade *trades, size_t count, size_t groups_max)
{
    struct tally all = { 0 };
    if (!count) {
        buf_text(out, "No closed trades.\n");
        return;
    }
    for (size_t i = 0; i < count; i++)
        tally_add(&all, &trades[i]);
    buf_text(out, "- all closed trades");
    put_tally(out, &all);
    put_captured(out, trades, count);
    buf_text(out, "By symbol:\n");
    put_groups(out, trades, count, symbol_of, groups_max);
    buf_text(out, "By regime at entry:\n");
    put_groups(out, trades, count, regime_of, groups_max);
    buf_text(out, "By hour of entry (UTC):\n");
    put_hours(out, trades, count);
}

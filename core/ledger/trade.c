/* A trade: one row of the ledger, from the tick that opened it to the tick that closed it. */
#include "core/ledger/trade.h"

const char *const trade_side_names[TRADE_SIDES + 1] = { [TRADE_LONG] = "long", [TRADE_SHORT] = "short" };

/* The gain of `size` from one price to another, rounded to twelve digits: an average such as 100.666… has no
 * end, and its rounding error must not show up as money. */
static struct decimal gain(enum trade_side side, struct decimal size, struct decimal from, struct decimal to)
{
    struct decimal move = side == TRADE_LONG ? decimal_sub(to, from) : decimal_sub(from, to);
    return decimal_round(decimal_mul(size, move), 12);
}

/* Updates MFE and MAE for the current size at this mark. */
static void update_extremes(struct trade *t, struct decimal mark)
{
    struct decimal excursion = gain(t->side, t->size_base.value, t->average_entry_price.value, mark);
    t->mfe_usd = decimal_max(t->mfe_usd, excursion);
    t->mae_usd = decimal_min(t->mae_usd, excursion);
}

static void realize(struct trade *t, struct decimal size, struct decimal price)
{
    struct decimal part = gain(t->side, size, t->average_entry_price.value, price);
    t->realized_pnl_usd = quantity_derived(decimal_add(t->realized_pnl_usd.value, part));
}

/* The average entry after `added` was bought at `price`. */
static struct decimal average(const struct trade *t, struct decimal added, struct decimal price)
{
    const struct decimal before = t->average_entry_price.value, away = decimal_sub(price, before);
    const struct decimal held = decimal_add(t->size_base.value, added);
    return decimal_add(before, decimal_div(decimal_mul(away, added), held));
}

struct trade trade_open(const struct position *p, struct quantity mark)
{
    const struct quantity none = quantity_derived(decimal_from_int(0));
    struct quantity entry = p->entry_price.given ? p->entry_price : mark;
    struct trade t = {
        .symbol = p->symbol,
        .side = p->side,
        .entry_price = entry,
        .entry_size_usd = quantity_derived(decimal_mul(p->size_base.value, entry.value)),
        .entry_leverage = p->leverage,
        .size_base = p->size_base,
        .average_entry_price = entry,
        .realized_pnl_usd = p->realized_pnl_usd.given ? p->realized_pnl_usd : none,
        .mark_price = mark,
    };
    update_extremes(&t, mark.value);
    return t;
}

void trade_follow(struct trade *t, const struct position *p, struct quantity mark)
{
    struct decimal change = decimal_sub(p->size_base.value, t->size_base.value);
    int direction = decimal_sign(change);

    if (direction <= 0 && p->entry_price.given) /* a reduction does not change the average entry */
        t->average_entry_price = p->entry_price;
    if (direction != 0) /* this mark also counts for the size before the tick */
        update_extremes(t, mark.value);
    if (direction < 0)
        realize(t, decimal_neg(change), mark.value);
    if (direction > 0)
        t->average_entry_price =
            p->entry_price.given ? p->entry_price : quantity_derived(average(t, change, mark.value));
    if (p->realized_pnl_usd.given)
        t->realized_pnl_usd = p->realized_pnl_usd;
    t->size_base = p->size_base;
    t->mark_price = mark;
    update_extremes(t, mark.value);
}

struct decimal trade_minutes(int64_t from_us, int64_t to_us)
{
    struct decimal us = decimal_from_int(to_us - from_us);
    return decimal_round(decimal_div(us, decimal_from_int(60000000)), 6);
}

void trade_close(struct trade *t, struct quantity price, struct quantity stated, int64_t tick_us)
{
    update_extremes(t, price.value);
    realize(t, t->size_base.value, price.value);
    if (stated.given)
        t->realized_pnl_usd = stated;
    t->size_base = quantity_derived(decimal_from_int(0));
    t->mark_price = price;
    t->exit_price = price;
    t->exit_tick_us = tick_us;
    t->holding_minutes = trade_minutes(t->entry_tick_us, tick_us);
}

bool trade_is_valid(const struct trade *t)
{
    const struct decimal all[] = {
        t->entry_size_usd.value,
        t->average_entry_price.value,
        t->realized_pnl_usd.value,
        t->mfe_usd,
        t->mae_usd,
        t->fees_usd,
        t->holding_minutes,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!decimal_is_valid(all[i]))
            return false;
    return true;
}

/* Statistics of closed trades, in total and by group. */
#include "core/ledger/trade_stats.h"

#include <string.h>

#include "core/base/json_put.h"

enum { DIGITS = 12 };

static void add_to(struct decimal *sum, struct decimal value)
{
    *sum = decimal_add(*sum, value);
}

void trade_stats_add(struct trade_stats *s, const struct trade_result *r)
{
    struct decimal net = decimal_sub(r->gross_usd, r->fees_usd);
    int sign = decimal_is_valid(net) ? decimal_sign(net) : 0;
    s->count++;
    s->wins += sign > 0;
    s->losses += sign < 0;
    add_to(&s->gross_usd, r->gross_usd);
    add_to(&s->fees_usd, r->fees_usd);
    add_to(&s->net_usd, net);
    add_to(&s->holding_minutes, r->holding_minutes);
    if (sign > 0)
        add_to(&s->won_usd, net);
    if (sign < 0)
        add_to(&s->lost_usd, decimal_neg(net));
    s->curve_peak_usd = decimal_max(s->curve_peak_usd, s->net_usd);
    s->drawdown_usd = decimal_max(s->drawdown_usd, decimal_sub(s->curve_peak_usd, s->net_usd));
    if (decimal_is_valid(r->mfe_usd) && decimal_sign(r->mfe_usd) > 0) {
        s->captures++;
        add_to(&s->captured, decimal_div(r->gross_usd, r->mfe_usd));
    }
}

static struct decimal ratio(struct decimal part, struct decimal whole)
{
    return decimal_round(decimal_div(part, whole), DIGITS);
}

static void put_count(struct buf *out, const char *key, int64_t value)
{
    buf_json_key(out, key);
    buf_fmt(out, "%lld", (long long)value);
}

void trade_stats_json(struct buf *out, const struct trade_stats *s)
{
    struct decimal count = decimal_from_int(s->count);
    put_count(out, "count", s->count);
    put_count(out, "wins", s->wins);
    put_count(out, "losses", s->losses);
    json_put_decimal(out, "win_rate", ratio(decimal_from_int(s->wins), count));
    json_put_decimal(out, "gross_pnl_usd", s->gross_usd);
    json_put_decimal(out, "fees_usd", s->fees_usd);
    json_put_decimal(out, "net_pnl_usd", s->net_usd);
    json_put_decimal(out, "expectancy_usd", ratio(s->net_usd, count));
    json_put_decimal(out, "profit_factor", ratio(s->won_usd, s->lost_usd));
    json_put_decimal(out, "max_drawdown_usd", s->drawdown_usd);
    json_put_decimal(out, "average_holding_minutes", ratio(s->holding_minutes, count));
    json_put_decimal(out, "mfe_capture", ratio(s->captured, decimal_from_int(s->captures)));
}

/* ---- groups ---- */

static int compare_keys(const char *a, const char *b)
{
    if (!a || !b)
        return (a ? 0 : 1) - (b ? 0 : 1);
    return strcmp(a, b);
}

static void set_key(struct trade_groups *g, struct trade_group *group, const char *key)
{
    size_t size = key ? strlen(key) + 1 : 0;
    if (group->room < size) {
        group->room = size * 2;
        group->key = arena_alloc(g->arena, group->room);
    }
    if (key)
        memcpy(group->key, key, size);
    else
        group->key = NULL, group->room = 0;
}

struct trade_stats *trade_stats_group(struct trade_groups *g, const char *key)
{
    size_t low = 0, high = g->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_keys(g->items[middle]->key, key);
        if (order == 0)
            return &g->items[middle]->stats;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    g->truncated |= g->count == TRADE_GROUPS;
    if (low == TRADE_GROUPS)
        return NULL;
    /* The last group can be dropped: enough keys sort before it. */
    struct trade_group *group =
        g->count == TRADE_GROUPS ? g->items[--g->count] : arena_zero(g->arena, sizeof *group);
    set_key(g, group, key);
    group->stats = (struct trade_stats){ 0 };
    memmove(&g->items[low + 1], &g->items[low], (g->count - low) * sizeof *g->items);
    g->items[low] = group;
    g->count++;
    return &group->stats;
}

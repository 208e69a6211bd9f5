/* Statistics of closed trades, in total and by group. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_STATS_H
#define DAYBOOK_CORE_LEDGER_TRADE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/decimal.h"

/* Of one closed trade. */
struct trade_result {
    struct decimal gross_usd, fees_usd, holding_minutes;
    struct decimal mfe_usd; /* 0: not known */
};

/* Start with all zero. The curve is the running sum of net PnL in the order of the exits. */
struct trade_stats {
    int64_t count, wins, losses, captures;
    struct decimal gross_usd, fees_usd, net_usd, won_usd, lost_usd, holding_minutes, captured;
    struct decimal curve_peak_usd, drawdown_usd;
};

/* Add trades in the order of their exits. */
void trade_stats_add(struct trade_stats *s, const struct trade_result *r);
/* Appends the members of a JSON object, from count to mfe_capture. Sums are exact, means and ratios are
 * rounded to twelve decimals; undefined values, and values that do not fit, are null. */
void trade_stats_json(struct buf *out, const struct trade_stats *s);

enum { TRADE_GROUPS = 1000 };

struct trade_group {
    char *key; /* NULL: the group of trades without a key */
    size_t room;
    struct trade_stats stats;
};

/* The first TRADE_GROUPS groups in byte order of their keys, NULL last. Memory is bounded by that. */
struct trade_groups {
    struct arena *arena;
    size_t count;
    bool truncated; /* there are more groups */
    struct trade_group *items[TRADE_GROUPS];
};

/* Finds or adds the group of that key; NULL: it is not among the first ones. */
struct trade_stats *trade_stats_group(struct trade_groups *g, const char *key);

#endif

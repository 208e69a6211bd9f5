/* The statistics of a ledger as lines of a prompt. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_SUMMARY_H
#define DAYBOOK_CORE_REFLECT_REFLECT_SUMMARY_H

#include "core/reflect/reflect.h"

enum { REFLECT_SYMBOL_MAX = 64 }; /* characters of a symbol or a regime */

/* Appends count, win rate and net PnL of all trades, by symbol and by regime (the `groups_max` with the most
 * trades; the others share one line) and by four hours of the UTC day at entry; and how much of their best
 * marks trades kept. Untrusted text is quoted and cannot open a tag. */
void reflect_summary(struct buf *out, const struct reflect_trade *trades, size_t count, size_t groups_max);

/* $1250.00; +$28.40, -$9.70, $0.00; +1.14%, 0.00%. A zero has no sign. */
void reflect_summary_put_usd(struct buf *out, double usd);
void reflect_summary_put_change(struct buf *out, double usd);
void reflect_summary_put_percent(struct buf *out, double percent);

#endif

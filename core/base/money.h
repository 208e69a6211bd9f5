/* Prices, dollars and percentages as people and prompts read them. */
#ifndef DAYBOOK_CORE_BASE_MONEY_H
#define DAYBOOK_CORE_BASE_MONEY_H

#include "core/base/buf.h"
#include "core/base/decimal.h"

/* 65,200 and 0.0000964: every digit, no trailing zeros. */
void money_price(struct buf *out, struct decimal price);
/* The same for a number given as text without exponent and trailing zeros. */
void money_price_text(struct buf *out, const char *price);
/* $250, $1,250.37: rounded to cents, which are left out when zero. */
void money_usd(struct buf *out, struct decimal usd);
/* +$22, -$8.50, $0: zero has no sign. */
void money_change(struct buf *out, struct decimal usd);
/* +$28.40, -$9.70, $0.00: always with cents. */
void money_pnl(struct buf *out, struct decimal usd);
/* +1.1%, -0.5%, 0.0%: with `digits` after the point. */
void money_percent(struct buf *out, struct decimal percent, int digits);

/* part / whole * 100; not valid unless the whole is above zero. */
struct decimal money_share(struct decimal part, struct decimal whole);

#endif

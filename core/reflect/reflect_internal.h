/* Shared by the files of the built-in reflector: reflect_slots.c finds groups, reflect.c writes the note. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_INTERNAL_H
#define DAYBOOK_CORE_REFLECT_REFLECT_INTERNAL_H

#include "core/reflect/reflect.h"

enum { REFLECT_GROUPS_MAX = 256 };

static const double reflect_claim_p = 0.04; /* of a slot, corrected for the number of comparisons */

/* The trades, sorted by content. */
struct ledger {
    struct arena *arena;
    const struct reflect_trade **trades;
    size_t count;
    double *returns; /* net PnL in percent of the size */
    double deviation;
    double *in, *out, *scratch; /* a group, the others, and room for both */
    bool *claimed;              /* trades of groups that the slot already has a claim about */
};

/* A group of trades against all others. */
struct claim {
    const char *words; /* the text before the numbers */
    const int *marks;  /* one per trade; those equal to `group` are the group */
    int group;
    size_t count, other_count;
    double value, other_value, total_usd, p, effect;
    bool shows_total;
};

struct claims {
    struct claim items[REFLECT_GROUPS_MAX];
    size_t count;
};

double reflect_mean(const double *values, size_t count);

/* Gathers the trades whose mark is `group`, and the others, both without those that have a claim already.
 * False: too few in either group. */
bool reflect_gather(struct ledger *l, struct claim *c);

/* One per slot: finds its groups. Their p-values are computed later. NULL for exits. */
typedef void reflect_finder(struct ledger *l, struct claims *all);
extern reflect_finder *const reflect_finders[REFLECT_SLOTS];

/* Exits: the share of their best mark that winners realized. Returns the number of claims. */
size_t reflect_slots_put_capture(struct buf *out, const struct ledger *l);
/* Whether losers are held longer than winners: gathers the holding times of both. False: too few of either.
 */
bool reflect_slots_gather_held(struct ledger *l, struct claim *held);
size_t reflect_slots_put_held(struct buf *out, const struct claim *held);

#endif

/* The built-in reflector as its files see it: one has the slots, the other makes the note. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_INTERNAL_H
#define DAYBOOK_CORE_REFLECT_REFLECT_INTERNAL_H

#include "core/reflect/reflect.h"

enum { REFLECT_GROUPS_MAX = 256 };

static const double reflect_claim_p = 0.04; /* of a slot, corrected for the number of looks */

/* The trades in their order. */
struct ledger {
    struct arena *arena;
    const struct reflect_trade **trades;
    size_t count;
    double *returns; /* net PnL by size, in percent */
    double deviation;
    double *in, *out, *scratch; /* a group, the others, and room for both */
    bool *told;                 /* trades of the groups that the slot has claims about already */
};

/* A group of trades against all others. */
struct claim {
    const char *words; /* the text before the numbers */
    const int *marks;  /* one for each trade; the group has those equal to `group` */
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

/* Gathers the trades whose mark is `group`, and all others that no claim is about yet. False: too few on
 * either side. */
bool reflect_gather(struct ledger *l, struct claim *c);

/* Each finds the groups of its slot; their p-values are computed later. NULL for exits. */
typedef void reflect_finder(struct ledger *l, struct claims *all);
extern reflect_finder *const reflect_finders[REFLECT_SLOTS];

/* Exits: the share of their best mark that winners realized. Returns how many claims it made. */
size_t reflect_slots_put_capture(struct buf *out, const struct ledger *l);
/* Losers that are held longer than winners, by what both were held. False: there are too few of either. */
bool reflect_slots_gather_held(struct ledger *l, struct claim *held);
size_t reflect_slots_put_held(struct buf *out, const struct claim *held);

#endif

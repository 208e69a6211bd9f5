/* The built-in reflector: distills the five slots of a note from the numbers of a ledger. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_H
#define DAYBOOK_CORE_REFLECT_REFLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"

enum reflect_slot {
    SLOT_ENTRY_TIMING,
    SLOT_SIZING,
    SLOT_SYMBOL_SELECTION,
    SLOT_EXIT_TIMING,
    SLOT_REGIME_FIT,
    REFLECT_SLOTS
};

extern const char *const reflect_slot_names[];    /* "entry_timing" …, NULL-terminated */
extern const char *const reflect_slot_headings[]; /* "### Entry timing" … */
extern const char reflect_no_pattern[];           /* the text of a slot without a claim */

enum {
    REFLECT_BULLETS_MAX = 4, /* of a slot */
    REFLECT_TRADES_MIN = 20, /* with fewer trades there are no claims */
    REFLECT_GROUP_MIN = 8,   /* the minimum for each group of a claim */
};

/* One closed trade. The built-in reflector uses the numbers, a model gets the texts too. */
struct reflect_trade {
    const char *symbol, *regime; /* regime NULL: not known */
    int64_t entry_us;
    double size_usd, net_usd, mfe_usd, minutes;
    const char *side, *entry_reason, *exit_reason; /* entry_reason NULL: not given */
    double mae_usd, fees_usd, leverage;            /* leverage 0: not known */
    int64_t exit_us;
};

/* Appends all five slots. In trades without any pattern, a slot has a claim in at most one of twenty ledgers;
 * small differences are not claimed either. Each claim has its numbers and its n. The same trades give the
 * same bytes, in any order. */
void reflect_builtin(struct buf *out, const struct reflect_trade *trades, size_t count);

/* The same in steps of a millisecond or two, in the arena of `out`. True: it is complete. */
struct reflecting *reflect_begin(struct buf *out, const struct reflect_trade *trades, size_t count);
bool reflect_step(struct reflecting *r);

#endif

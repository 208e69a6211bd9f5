/* The ledger of one deployment while ticks are applied to it: read, changed in memory, stored at once. */
#ifndef DAYBOOK_HANDLERS_LEDGER_LEDGER_H
#define DAYBOOK_HANDLERS_LEDGER_LEDGER_H

#include "core/ledger/session.h"
#include "core/reflect/cadence.h"
#include "handlers/ledger/tick_body.h"

struct ledger {
    struct call *c;
    const char *id, *skill_id, *version, *lessons_hash;
    enum cadence cadence;
    int64_t every_n_trades;
    int64_t ticks;            /* as it was read: what is stored is stored on top of this */
    int64_t base_tick_us;     /* the last tick that is stored; MATERIALIZE_NO_TICK: none */
    int64_t note_us;          /* when the active note was made; MATERIALIZE_NO_TICK: there is none */
    int64_t lessons_until_us; /* ticks from here on may have other lessons: load it again */

    /* after the ticks that were applied */
    struct session session;
    const char *last_snapshot_id;
    struct trade *open;
    size_t open_count;
    int64_t closed_since_reflection;
    bool reflection_due; /* by the last of them */

    /* what is not stored yet */
    int64_t applied, closed;
    struct buf snapshots, changed, begun; /* lists of JSON, without their brackets */
};

/* Reads it, for ticks from `tick_at` on; ERR_NOT_FOUND: there is no such deployment. */
enum err ledger_load(struct call *c, const char *deployment_id, const char *tick_at,
                     struct ledger *l) must_check;

/* Applies a tick that is later than the last one and appends the answer to it. Nothing is changed when it
 * fails. */
enum err ledger_apply(struct ledger *l, const struct tick_in *in, struct buf *answer) must_check;

/* Stores what was applied, in one statement. `stored` false: another runner was faster, and nothing was
 * stored. */
enum err ledger_store(struct ledger *l, bool *stored) must_check;

/* Answers a tick that is not after the last one: with the stored response if it is a retry, else
 * ERR_TICK_OUT_OF_ORDER or ERR_TICK_CONFLICT. */
enum err ledger_replay(const struct ledger *l, const struct tick_in *in, struct buf *answer,
                       bool *reflection_due) must_check;

#endif

/* The ledger of one deployment: loaded, changed by ticks in memory, and stored in one statement. */
#ifndef DAYBOOK_HANDLERS_LEDGER_LEDGER_H
#define DAYBOOK_HANDLERS_LEDGER_LEDGER_H

#include "core/ledger/session.h"
#include "core/reflect/cadence.h"
#include "handlers/ledger/tick_body.h"

/* The parts of the response to a tick, stored with it so that a retry gets the same bytes. */
struct tick_response {
    const char *snapshot_id, *ops, *open, *unmatched_fees;
    const char *warnings; /* NULL: none */
    bool reflection_due, replayed;
};

struct ledger {
    struct call *c;
    struct arena *arena; /* of the ledger and of everything applied to it */
    const char *id, *skill_id, *version, *lessons_hash;
    enum cadence cadence;
    int64_t every_n_trades;
    int64_t ticks;            /* when loaded; ledger_store stores nothing if there are more by then */
    int64_t base_tick_us;     /* the last stored tick; MATERIALIZE_NO_TICK: none */
    const char *base_tick_at; /* the same as text; NULL: none */
    int64_t base_tick_n;      /* its place among the writes to the journal */
    int64_t note_us;          /* creation of the active note; MATERIALIZE_NO_TICK: none */
    int64_t lessons_until_us; /* later ticks may have other lessons: reload the ledger */

    /* the state after the applied ticks */
    struct session session;
    const char *last_snapshot_id;
    struct trade *open;
    size_t open_count;
    int64_t closed_since_reflection;
    bool reflection_due; /* after the last tick */

    /* not stored yet */
    int64_t applied, closed, actions;
    struct buf snapshots, changed, opened; /* JSON objects, separated by commas */
};

/* Loads the ledger for ticks at or after `tick_at`. ERR_NOT_FOUND: no such deployment. */
enum err ledger_load(struct call *c, struct arena *arena, const char *deployment_id, const char *tick_at,
                     struct ledger *l) must_check;

/* Applies a tick that is later than the last one. `out` then lacks the warnings, which ledger_store adds. On
 * failure nothing changes. */
enum err ledger_apply(struct ledger *l, const struct tick_in *in, struct tick_response *out) must_check;

/* Stores the applied ticks and their events in one statement. `responses` are those of all applied ticks.
 * *stored is false if another runner stored a tick first; then nothing was stored. */
enum err ledger_store(struct ledger *l, struct tick_response *responses, bool *stored) must_check;

/* Handles a tick that is not later than the last one: reads the stored response if it is a retry, else
 * returns ERR_TICK_OUT_OF_ORDER or ERR_TICK_CONFLICT. */
enum err ledger_replay(const struct ledger *l, const struct tick_in *in,
                       struct tick_response *out) must_check;

/* Appends the response as JSON. */
void ledger_response_json(struct buf *out, const struct tick_response *response);

#endif

/* The body of a tick: its fields, and their conversion to the input of the materializer. */
#ifndef DAYBOOK_HANDLERS_LEDGER_TICK_BODY_H
#define DAYBOOK_HANDLERS_LEDGER_TICK_BODY_H

#include "core/ledger/materialize.h"
#include "server/dispatch/call.h"

struct position_in {
    const char *symbol, *side, *size_base, *mark_price, *leverage, *entry_price, *realized_pnl_usd;
};
struct portfolio_in {
    const char *equity_usd;
    struct objects positions; /* of struct position_in */
};
struct action_in {
    const char *kind, *symbol, *reason;
};
struct engine_in {
    const char *kind, *rule;
};
struct amount_in { /* a mark or a fee */
    const char *symbol, *amount;
};
struct bars_in {
    const char *symbol;
    struct texts closes;
};

struct tick_in {
    const char *id; /* of the deployment */
    const char *tick_at, *lessons_hash, *reflect;
    struct portfolio_in *portfolio;
    struct action_in *proposed_action;
    struct engine_in *engine;
    struct objects marks, fees, bars;
};

extern const struct field portfolio_fields[];
extern const struct field tick_fields[];      /* path, query and body */
extern const struct field tick_body_fields[]; /* the body alone */

/* Converts the input, in `arena`, and checks what a field table cannot: two positions of one symbol, numbers
 * that are too large, a tick in the future. Reports all faults, with `prefix` before the field names. */
enum err tick_body_build(struct call *c, struct arena *arena, const struct tick_in *in, const char *prefix,
                         struct tick *tick) must_check;

/* ERR_TICK_OUT_OF_ORDER with both times. `last` describes the last tick ("prev.tick_at"). */
enum err tick_body_out_of_order(struct call *c, const char *last, int64_t last_us,
                                int64_t tick_us) must_check;

/* Turns a failure of the materializer into a problem of the request. */
enum err tick_body_problem(struct call *c, enum materialize_status status, const char *symbol,
                           const char *prefix) must_check;

/* Appends the tick without its bars as JSON, with its numbers as sent. */
void tick_body_json(struct buf *out, const struct tick_in *in);

/* A hash of the content without the bars. It does not depend on the order of positions, marks and fees or on
 * the notation of numbers. `tick` is the result of tick_body_build for `in`. */
const char *tick_body_hash(struct arena *arena, const struct tick_in *in, const struct tick *tick);

/* Sets what the materializer does not know about opened trades: the regime tag, from the bars of the symbol,
 * and the lessons hash, which is the one that the agent sent, else `in_force`. */
void tick_body_complete(struct arena *arena, const struct tick_in *in, const char *in_force,
                        struct materialized *m);

#endif

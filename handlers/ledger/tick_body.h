/* A tick as it is posted: its fields, and the tick of the materializer that they become. */
#ifndef DAYBOOK_HANDLERS_LEDGER_TICK_BODY_H
#define DAYBOOK_HANDLERS_LEDGER_TICK_BODY_H

#include "core/ledger/materialize.h"
#include "server/call.h"

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
extern const struct field tick_fields[];      /* with what the path and the query say */
extern const struct field tick_body_fields[]; /* the body alone */

/* Converts the input, in `arena`, and checks what no field table can: two positions of one symbol, numbers
 * that are too large, a tick in the future. All faults are reported, their fields prefixed with `prefix`. */
enum err tick_build(struct call *c, struct arena *arena, const struct tick_in *in, const char *prefix,
                    struct tick *tick) must_check;

/* ERR_TICK_OUT_OF_ORDER: names the last tick as `last` ("prev.tick_at") and says when both are. */
enum err tick_out_of_order(struct call *c, const char *last, int64_t last_us, int64_t tick_us) must_check;

/* What the materializer refuses, as a problem of the request. */
enum err tick_refusal(struct call *c, enum materialize_status status, const char *symbol,
                      const char *prefix) must_check;

/* The tick without its bars as JSON, its numbers as they came. */
void tick_input_json(struct buf *out, const struct tick_in *in);

/* The same for the same content, whatever the order of positions, marks and fees and the spelling of numbers;
 * without the bars. The tick is the one that tick_build made of it. */
const char *tick_content_hash(struct arena *arena, const struct tick_in *in, const struct tick *tick);

/* The hash of the lessons that what opens is decided under: as the agent says, or as they were in force. */
const char *tick_lessons(const struct tick_in *in, const char *in_force);

/* The regime tag of a symbol by its bars; NULL when there are none. */
const char *tick_regime(struct arena *arena, const struct tick_in *in, const char *symbol);

#endif

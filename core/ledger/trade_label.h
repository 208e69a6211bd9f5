/* The entry and exit reasons of trades: the agent's own words, or a label of the ledger. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_LABEL_H
#define DAYBOOK_CORE_LEDGER_TRADE_LABEL_H

#include <stdbool.h>

#define EXIT_LIQUIDATED       "liquidated"
#define EXIT_EXTERNAL_FLATTEN "external_flatten"

/* The action that the agent proposed in the tick, and the decision of the engine; NULL: not given. */
struct trade_intent {
    const char *kind, *symbol, *reason; /* proposed_action */
    const char *engine_kind, *engine_rule;
};

/* An action drives a change of `symbol` when
 *   - there is an action,
 *   - the engine's kind is "executed", or is not given: then the change itself shows that it was executed,
 *   - the action names this symbol or none.
 * The kinds close_position and adjust_position end a position; adjust_position and every order (any kind that
 * is not in the table of trade_label.c) begin one; hold, none and no_action do neither.
 *
 * The exit reason is the first that applies:
 *   1. an action drives the change and ends positions, or the change is a flip and the action begins the new
 *      position: the reason of the action, or else its kind, so that every exit has a reason;
 *   2. the engine's kind is flatten or external_flatten, or that is the kind of an action which names this
 *      symbol or none and was not rejected: "external_flatten";
 *   3. "liquidated": the position is gone, and not by an action of the agent. */
const char *trade_label_exit(const struct trade_intent *intent, const char *symbol, bool flip);

/* Whether the agent proposed an order of any kind and the engine executed it. */
bool trade_label_is_executed_order(const struct trade_intent *intent);
/* The same, if the order names this symbol or none. */
bool trade_label_is_executed_on(const struct trade_intent *intent, const char *symbol);

/* The entry reason: that of an action which drives the change and begins positions. NULL: the position
 * appeared without the agent. */
const char *trade_label_entry(const struct trade_intent *intent, const char *symbol);

#endif

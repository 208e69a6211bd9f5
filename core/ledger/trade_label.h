/* Why a trade began and why it ended, in the words of the agent or of the ledger. */
#ifndef DAYBOOK_CORE_LEDGER_TRADE_LABEL_H
#define DAYBOOK_CORE_LEDGER_TRADE_LABEL_H

#include <stdbool.h>

#define EXIT_LIQUIDATED       "liquidated"
#define EXIT_EXTERNAL_FLATTEN "external_flatten"

/* What the agent proposed in the tick and how the engine decided; NULL where not given. */
struct trade_intent {
    const char *kind, *symbol, *reason; /* proposed_action */
    const char *engine_kind, *engine_rule;
};

/* An action drives a change of `symbol` when
 *   - there is one,
 *   - the engine's kind is "executed", or the engine said nothing: then the change itself shows that it was
 * done,
 *   - it names this symbol or none.
 * The kinds close_position and adjust_position end a position; adjust_position and every order (any kind that
 * is not in the table of trade_label.c) begin one; hold, none and no_action do neither.
 *
 * The exit reason, the first that holds:
 *   1. an action drives the change and ends positions, or the change is a flip and the action begins the new
 *      position: the action's reason (its kind, where it gave no reason: an exit is never without one);
 *   2. the engine's kind is flatten or external_flatten, or the action's is, which names this symbol or none
 *      and which the engine did not reject: "external_flatten";
 *   3. "liquidated": the position is gone and the agent did not do it. */
const char *trade_label_exit(const struct trade_intent *intent, const char *symbol, bool flip);

/* The agent proposed an order, of whatever kind, and the engine says that it executed it. */
bool trade_label_is_executed_order(const struct trade_intent *intent);

/* The entry reason: the action's reason when it drives the change and begins positions; else NULL: the
 * position appeared without the agent, and the ledger invents nothing. */
const char *trade_label_entry(const struct trade_intent *intent, const char *symbol);

#endif

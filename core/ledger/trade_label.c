/* The entry and exit reasons of trades: the agent's own words, or a label of the ledger. */
#include "core/ledger/trade_label.h"

#include <stddef.h>
#include <string.h>

struct action {
    const char *kind;
    bool ends, begins;
    bool flattens;
};

static const struct action actions[] = {
    { .kind = "close_position", .ends = true },
    { .kind = "adjust_position", .ends = true, .begins = true },
    { .kind = "hold" },
    { .kind = "none" },
    { .kind = "no_action" },
    { .kind = "flatten", .flattens = true },
    { .kind = "external_flatten", .flattens = true },
};

static struct action action_of(const char *kind)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (kind && strcmp(kind, actions[i].kind) == 0)
            return actions[i];
    return (struct action){ .kind = kind, .begins = kind != NULL }; /* any other kind is an order */
}

static bool engine_is(const struct trade_intent *intent, const char *kind)
{
    return intent->engine_kind && strcmp(intent->engine_kind, kind) == 0;
}

static bool is_of(const struct trade_intent *intent, const char *symbol)
{
    return !intent->symbol || strcmp(intent->symbol, symbol) == 0;
}

static bool drives(const struct trade_intent *intent, const char *symbol)
{
    return (!intent->engine_kind || engine_is(intent, "executed")) && is_of(intent, symbol);
}

static bool flattened(const struct trade_intent *intent, const char *symbol)
{
    return action_of(intent->engine_kind).flattens ||
           (action_of(intent->kind).flattens && is_of(intent, symbol) && !engine_is(intent, "rejected"));
}

const char *trade_label_exit(const struct trade_intent *intent, const char *symbol, bool flip)
{
    struct action action = action_of(intent->kind);
    if (drives(intent, symbol) && (action.ends || (flip && action.begins)))
        return intent->reason ? intent->reason : intent->kind;
    return flattened(intent, symbol) ? EXIT_EXTERNAL_FLATTEN : EXIT_LIQUIDATED;
}

bool trade_label_is_executed_order(const struct trade_intent *intent)
{
    struct action action = action_of(intent->kind);
    return (action.begins || action.ends) && engine_is(intent, "executed");
}

bool trade_label_is_executed_on(const struct trade_intent *intent, const char *symbol)
{
    return trade_label_is_executed_order(intent) && is_of(intent, symbol);
}

const char *trade_label_entry(const struct trade_intent *intent, const char *symbol)
{
    return drives(intent, symbol) && action_of(intent->kind).begins ? intent->reason : NULL;
}

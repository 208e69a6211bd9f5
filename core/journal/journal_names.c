/* The words of the journal. */
#include "core/journal/journal_names.h"

#include <stddef.h>

const char *const journal_names_kinds[] = { "note", "proposal", "risk_note", "decision", NULL };
const char *const journal_names_actions[] = { "buy", "sell", "add", "reduce", "close", "hold", "skip", NULL };
const char *const journal_names_order_actions[] = { "buy", "sell", "add", "reduce", "close", NULL };

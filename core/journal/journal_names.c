/* The words of the journal. */
#include "core/journal/journal_names.h"

#include <stddef.h>

const char *const journal_names_kinds[] = { "note", "proposal", "risk_note", "decision", NULL };
const char *const journal_names_actions[] = { "buy", "sell", "add", "reduce", "close", "hold", "skip", NULL };
const char *const journal_names_order_actions[] = { "buy", "sell", "add", "reduce", "close", NULL };
const char *const journal_names_events[] = { "memory.created",
                                             "memory.retracted",
                                             "memory.searched",
                                             "thesis.opened",
                                             "thesis.changed",
                                             "thesis.closed",
                                             "thesis.outcome_observed",
                                             "thesis.not_retrieved",
                                             "order.submitted",
                                             "order.outcome",
                                             "action.executed",
                                             "lesson.proposed",
                                             "lesson.validated",
                                             "lesson.superseded",
                                             "lesson.retired",
                                             "lesson.merged",
                                             "reflection_note.created",
                                             "reflection_note.promoted",
                                             "reflection_note.superseded",
                                             NULL };

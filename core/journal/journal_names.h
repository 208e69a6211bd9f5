/* The words of the journal, NULL-terminated: the `choices` of its fields. */
#ifndef DAYBOOK_CORE_JOURNAL_JOURNAL_NAMES_H
#define DAYBOOK_CORE_JOURNAL_JOURNAL_NAMES_H

/* Kinds of memories that POST /v1/memories takes. Theses have their own resource. */
extern const char *const journal_names_kinds[];
/* Actions of a decision, and of an order. */
extern const char *const journal_names_actions[];
extern const char *const journal_names_order_actions[];
/* Kinds of events. */
extern const char *const journal_names_events[];

#endif

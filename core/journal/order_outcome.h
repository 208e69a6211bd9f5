/* The outcome of an order: which one may follow which. */
#ifndef DAYBOOK_CORE_JOURNAL_ORDER_OUTCOME_H
#define DAYBOOK_CORE_JOURNAL_ORDER_OUTCOME_H

#include <stdbool.h>

enum order_outcome { ORDER_FILLED, ORDER_REJECTED, ORDER_CANCELLED, ORDER_UNKNOWN, ORDER_OUTCOMES };

/* The names in the order of the enum, NULL-terminated: the `choices` of a field. */
extern const char *const order_outcome_names[ORDER_OUTCOMES + 1];

enum order_step {
    ORDER_STEP_CHANGE,  /* the new outcome is stored */
    ORDER_STEP_REPEAT,  /* it is the outcome already */
    ORDER_STEP_REFUSED, /* the order has another outcome, which is final */
};

/* Whether the outcome and its details can no longer change: all but unknown. */
bool order_outcome_is_final(const char *outcome);
/* Both are names; `from` NULL: no outcome was reported yet. An unknown outcome may be resolved later. */
enum order_step order_outcome_step(const char *from, const char *to);

#endif

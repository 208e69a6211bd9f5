/* The outcome of an order: which one may follow which. */
#include "core/journal/order_outcome.h"

#include <string.h>

const char *const order_outcome_names[ORDER_OUTCOMES + 1] = {
    [ORDER_FILLED] = "filled",
    [ORDER_REJECTED] = "rejected",
    [ORDER_CANCELLED] = "cancelled",
    [ORDER_UNKNOWN] = "unknown",
};

bool order_outcome_is_final(const char *outcome)
{
    return strcmp(outcome, order_outcome_names[ORDER_UNKNOWN]) != 0;
}

enum order_step order_outcome_step(const char *from, const char *to)
{
    if (!from)
        return ORDER_STEP_CHANGE;
    if (strcmp(from, to) == 0)
        return ORDER_STEP_REPEAT;
    return order_outcome_is_final(from) ? ORDER_STEP_REFUSED : ORDER_STEP_CHANGE;
}

/* The outcome of an order: which one may follow which. */
#include <string.h>

#include "core/journal/order_outcome.h"
#include "tests/core/unit.h"

START_TEST(the_first_outcome_is_stored_whatever_it_is)
{
    for (int to = 0; to < ORDER_OUTCOMES; to++)
        ck_assert_int_eq(order_outcome_step(NULL, order_outcome_names[to]), ORDER_STEP_CHANGE);
    ck_assert_ptr_null(order_outcome_names[ORDER_OUTCOMES]);
}
END_TEST

START_TEST(only_an_unknown_outcome_changes_and_the_same_again_is_a_repeat)
{
    for (int from = 0; from < ORDER_OUTCOMES; from++)
        for (int to = 0; to < ORDER_OUTCOMES; to++) {
            enum order_step expected = from == to              ? ORDER_STEP_REPEAT
                                       : from == ORDER_UNKNOWN ? ORDER_STEP_CHANGE
                                                               : ORDER_STEP_REFUSED;
            ck_assert_int_eq(order_outcome_step(order_outcome_names[from], order_outcome_names[to]),
                             expected);
        }
}
END_TEST

UNIT_MAIN("order_outcome", the_first_outcome_is_stored_whatever_it_is,
          only_an_unknown_outcome_changes_and_the_same_again_is_a_repeat)

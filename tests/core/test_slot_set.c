/* Sets of slots, by name and back. */
#include "core/reflect/slot_set.h"
#include "tests/core/unit.h"

START_TEST(each_name_is_one_slot_and_others_are_none)
{
    for (int slot = 0; slot < REFLECT_SLOTS; slot++)
        ck_assert_uint_eq(slot_set_of(reflect_slot_names[slot]), 1u << slot);
    ck_assert_uint_eq(slot_set_of("Sizing"), 0);
    ck_assert_uint_eq(slot_set_of("sizing,regime_fit"), 0);
    ck_assert_uint_eq(slot_set_of(""), 0);
}
END_TEST

START_TEST(a_list_of_names_becomes_a_set_and_its_names_in_the_order_of_a_note)
{
    const char *names[REFLECT_SLOTS];
    const slot_set all = (1u << REFLECT_SLOTS) - 1;
    ck_assert_uint_eq(slot_set_listed(""), 0);
    const slot_set two = slot_set_listed("regime_fit,sizing");
    ck_assert_uint_eq(two, 1u << SLOT_REGIME_FIT | 1u << SLOT_SIZING);
    ck_assert_uint_eq(slot_set_names(two, names), 2);
    ck_assert_str_eq(names[0], "sizing");
    ck_assert_str_eq(names[1], "regime_fit");
    ck_assert_uint_eq(slot_set_names(all, names), REFLECT_SLOTS);
    ck_assert_uint_eq(slot_set_names(0, names), 0);
}
END_TEST

UNIT_MAIN("slot_set", each_name_is_one_slot_and_others_are_none,
          a_list_of_names_becomes_a_set_and_its_names_in_the_order_of_a_note)

/* Lists of texts that statements return as one. */
#include "core/base/list_text.h"
#include "tests/core/unit.h"

static struct arena arena;

START_TEST(texts_come_apart_in_their_order_empty_ones_too)
{
    size_t count;
    const char **texts = list_text_split(&arena,
                                         "R3\x1f\x1f"
                                         "a b\x1f",
                                         &count);
    const char *const expected[] = { "R3", "", "a b", "" };
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(texts[i], expected[i]);
    arena_release(&arena);
}
END_TEST

START_TEST(no_text_is_no_list_and_an_empty_one_is_a_list_of_one)
{
    size_t count;
    (void)list_text_split(&arena, NULL, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert_str_eq(list_text_split(&arena, "", &count)[0], "");
    ck_assert_uint_eq(count, 1);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("list_text", texts_come_apart_in_their_order_empty_ones_too,
          no_text_is_no_list_and_an_empty_one_is_a_list_of_one)

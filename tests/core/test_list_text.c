/* Lists of texts that a statement returns as one value. */
#include "core/base/list_text.h"
#include "tests/core/unit.h"

static struct arena arena;

START_TEST(texts_are_split_in_order_including_empty_ones)
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

START_TEST(null_is_an_empty_list_and_an_empty_text_a_list_of_one)
{
    size_t count;
    (void)list_text_split(&arena, NULL, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert_str_eq(list_text_split(&arena, "", &count)[0], "");
    ck_assert_uint_eq(count, 1);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("list_text", texts_are_split_in_order_including_empty_ones,
          null_is_an_empty_list_and_an_empty_text_a_list_of_one)

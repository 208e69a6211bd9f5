/* Embedding vectors: normalisation, columns, and their texts for the database. */
#include "core/base/vector.h"

#include <math.h>

#include "tests/core/unit.h"

static struct arena arena;

START_TEST(a_vector_is_scaled_to_length_one)
{
    float v[] = { 3, 0, -4 };
    ck_assert(vector_normalise(v, 3));
    ck_assert_float_eq_tol(v[0], 0.6f, 1e-6f);
    ck_assert_float_eq_tol(v[2], -0.8f, 1e-6f);
}
END_TEST

START_TEST(a_vector_without_a_direction_is_refused)
{
    float zero[] = { 0, 0 }, infinite[] = { INFINITY, 1 }, nan[] = { NAN, 1 };
    ck_assert(!vector_normalise(zero, 2));
    ck_assert(!vector_normalise(infinite, 2));
    ck_assert(!vector_normalise(nan, 2));
    ck_assert(!vector_normalise(zero, 0));
}
END_TEST

START_TEST(a_vector_goes_to_the_narrowest_column_that_holds_it)
{
    static const struct {
        size_t dim;
        int column;
    } cases[] = {
        { 0, 0 },       { 1, 384 },     { 384, 384 },   { 385, 768 },   { 1024, 1024 },
        { 1536, 1536 }, { 1537, 3072 }, { 3073, 4000 }, { 4000, 4000 }, { 4001, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(vector_column(cases[i].dim), cases[i].column);
}
END_TEST

START_TEST(the_text_for_a_column_is_padded_with_zeros)
{
    const float v[] = { 0.5f, -0.25f };
    struct buf padded = { .arena = &arena }, array = { .arena = &arena };
    vector_text(&padded, v, 2, 4);
    ck_assert_str_eq(buf_string(&padded), "[0.5,-0.25,0,0]");
    vector_array(&array, v, 2);
    ck_assert_str_eq(buf_string(&array), "{0.5,-0.25}");
    arena_release(&arena);
}
END_TEST

START_TEST(an_array_has_every_digit_of_its_numbers)
{
    const float v[] = { 0.1f, 1.0f / 3 };
    struct buf out = { .arena = &arena };
    vector_array(&out, v, 2);
    float a, b;
    ck_assert_int_eq(sscanf(buf_string(&out), "{%f,%f}", &a, &b), 2);
    ck_assert(memcmp((const float[]){ a, b }, v, sizeof v) == 0);
    arena_release(&arena);
}
END_TEST

START_TEST(records_are_separated_by_commas)
{
    const float v[] = { 1 };
    struct buf list = { .arena = &arena };
    buf_char(&list, '[');
    vector_record(&list, "a", v, 1);
    vector_record(&list, "b", v, 1);
    const char *text = buf_string(&list);
    ck_assert_ptr_eq(strstr(text, "[{\"id\":\"a\",\"width\":384,\"vector\":\"[1,0,"), text);
    ck_assert_ptr_nonnull(strstr(text, ",0]\"},{\"id\":\"b\",\"width\":384,\"vector\":\"[1,0,"));
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("vector", a_vector_is_scaled_to_length_one, a_vector_without_a_direction_is_refused,
          a_vector_goes_to_the_narrowest_column_that_holds_it, the_text_for_a_column_is_padded_with_zeros,
          an_array_has_every_digit_of_its_numbers, records_are_separated_by_commas)

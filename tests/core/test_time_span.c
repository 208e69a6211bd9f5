/* Lengths of time as people write them. */
#include "core/base/time_span.h"
#include "tests/core/unit.h"

START_TEST(a_span_is_a_number_and_a_unit)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } cases[] = { { "0s", 0 },           { "45s", 45 },
                  { "30m", 1800 },       { "12h", 43200 },
                  { "90d", 90 * 86400 }, { "2w", 14 * 86400 },
                  { "007d", 7 * 86400 }, { "36525d", INT64_C(36525) * 86400 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = -1;
        ck_assert_msg(time_span_parse(cases[i].text, &us), "%s", cases[i].text);
        ck_assert_int_eq(us, cases[i].seconds * 1000000);
    }
}
END_TEST

START_TEST(anything_else_is_rejected)
{
    static const char *const cases[] = {
        "",    "d",    "5",   "5x", "5 d",   " 5d",    "5dd",
        "-5d", "1.5h", "+5d", "5D", "1h30m", "36526d", "99999999999999999999s"
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us;
        ck_assert_msg(!time_span_parse(cases[i], &us), "%s", cases[i]);
    }
}
END_TEST

UNIT_MAIN("time_span", a_span_is_a_number_and_a_unit, anything_else_is_rejected)

/* Cells of CSV. */
#include "core/base/csv.h"
#include "tests/core/unit.h"

static const char *cell(const char *text)
{
    static struct arena arena;
    struct buf out = { .arena = &arena };
    csv_text(&out, text, strlen(text));
    return buf_string(&out);
}

START_TEST(plain_text_is_unchanged)
{
    ck_assert_str_eq(cell(""), "");
    ck_assert_str_eq(cell("BTC-PERP"), "BTC-PERP");
    ck_assert_str_eq(cell("it's 5% up = good; ü"), "it's 5% up = good; ü");
}
END_TEST

START_TEST(a_delimiter_in_a_cell_is_quoted)
{
    ck_assert_str_eq(cell("a,b"), "\"a,b\"");
    ck_assert_str_eq(cell("a\nb"), "\"a\nb\"");
    ck_assert_str_eq(cell("a\rb"), "\"a\rb\"");
    ck_assert_str_eq(cell("say \"no\""), "\"say \"\"no\"\"\"");
}
END_TEST

START_TEST(a_formula_is_escaped)
{
    ck_assert_str_eq(cell("=1+1"), "'=1+1");
    ck_assert_str_eq(cell("+1"), "'+1");
    ck_assert_str_eq(cell("-1"), "'-1");
    ck_assert_str_eq(cell("@SUM(A1)"), "'@SUM(A1)");
    ck_assert_str_eq(cell("\t=1"), "'\t=1");
    ck_assert_str_eq(cell("\n=1"), "\"'\n=1\"");
    ck_assert_str_eq(cell("\uff1d1"), "'\uff1d1");
    ck_assert_str_eq(cell("\uff201"), "'\uff201");
    ck_assert_str_eq(cell("\uff1c1"), "\uff1c1");
    ck_assert_str_eq(cell("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
}
END_TEST

UNIT_MAIN("csv", plain_text_is_unchanged, a_delimiter_in_a_cell_is_quoted, a_formula_is_escaped)

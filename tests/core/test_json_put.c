/* Members of JSON objects. */
#include "core/base/json_put.h"
#include "tests/core/unit.h"

static struct arena arena;

static struct buf begin(void)
{
    struct buf out = { .arena = &arena };
    buf_char(&out, '{');
    return out;
}

static const char *end(struct buf *out)
{
    buf_char(out, '}');
    return buf_string(out);
}

START_TEST(members_are_separated_by_commas)
{
    static const char *const tags[] = { "rates", "a \"b\"" };
    struct buf out = begin();
    json_put_text(&out, "symbol", "BTC\n");
    json_put_texts(&out, "tags", tags, 2);
    json_put_raw(&out, "price", "1.50");
    json_put_bool(&out, "open", true);
    json_put_int(&out, "count", INT64_MIN);
    json_put_decimal(&out, "size", decimal_from_int(-3));
    json_put_time(&out, "at", 1767225600000000);
    ck_assert_str_eq(end(&out), "{\"symbol\":\"BTC\\n\",\"tags\":[\"rates\",\"a \\\"b\\\"\"],\"price\":1.50,"
                                "\"open\":true,\"count\":-9223372036854775808,\"size\":-3,"
                                "\"at\":\"2026-01-01T00:00:00Z\"}");
}
END_TEST

START_TEST(a_missing_value_is_null)
{
    struct decimal invalid = decimal_div(decimal_from_int(1), decimal_from_int(0));
    struct buf out = begin();
    json_put_text(&out, "text", NULL);
    json_put_raw(&out, "raw", NULL);
    json_put_decimal(&out, "decimal", invalid);
    json_put_texts(&out, "texts", NULL, 0);
    ck_assert_str_eq(end(&out), "{\"text\":null,\"raw\":null,\"decimal\":null,\"texts\":[]}");
}
END_TEST

START_TEST(a_nested_object_begins_without_a_comma)
{
    struct buf out = begin();
    json_put_int(&out, "a", 1);
    buf_json_key(&out, "b");
    buf_char(&out, '{');
    json_put_int(&out, "c", 2);
    buf_char(&out, '}');
    json_put_bool(&out, "d", false);
    ck_assert_str_eq(end(&out), "{\"a\":1,\"b\":{\"c\":2},\"d\":false}");
}
END_TEST

UNIT_MAIN("json_put", members_are_separated_by_commas, a_missing_value_is_null,
          a_nested_object_begins_without_a_comma)

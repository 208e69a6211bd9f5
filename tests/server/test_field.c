/* Field tables: bodies, queries and paths decoded into structs, and structs rendered as parameters. */
#include "core/base/cursor.h"
#include "server/dispatch/uri.h"
#include "server/json/field.h"
#include "tests/core/unit.h"

static struct arena arena;

struct point_in {
    const char *symbol, *price;
    int64_t size;
    struct texts notes;
};

struct outcome_in {
    const char *metric, *value, *at;
    struct point_in *point;
    int64_t sample_size;
};

struct all_in {
    const char *id;
    const char *text, *line, *number, *flag, *time, *uuid, *name, *choice, *share;
    int64_t count, any_count;
    struct texts tags, evidence, ids;
    struct outcome_in *outcome;
    struct objects points;
    const char *as_of, *status;
    int64_t limit, offset;
    struct texts filter;
    struct cursor_values cursor;
    const char *computed;
    const char *key, *json;
};

static const char *const choices[] = { "live", "paper", "sim", NULL };

static const struct field point_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct point_in, symbol, .required = true, .min = 1, .max = 8),
    FIELD(FROM_BODY, KIND_NUMBER, struct point_in, price, .required = true),
    FIELD(FROM_BODY, KIND_INT, struct point_in, size),
    FIELD(FROM_BODY, KIND_TEXTS, struct point_in, notes, .item_max = 10),
    END_FIELDS,
};

static const struct field outcome_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct outcome_in, metric, .required = true, .min = 1, .max = 100),
    FIELD(FROM_BODY, KIND_NUMBER, struct outcome_in, value, .required = true),
    FIELD(FROM_BODY, KIND_TIME, struct outcome_in, at),
    FIELD(FROM_BODY, KIND_OBJECT, struct outcome_in, point, SUB(point_fields, struct point_in)),
    FIELD(FROM_BODY, KIND_INT, struct outcome_in, sample_size, .min = 1, .max = 1000000000),
    END_FIELDS,
};

static const struct field cursor_fields[] = {
    { .name = "at", .kind = KIND_TIME },
    { .name = "id", .kind = KIND_UUID },
    END_FIELDS,
};

static const struct field fields[] = {
    FIELD(FROM_PATH, KIND_UUID, struct all_in, id),
    FIELD(FROM_BODY, KIND_TEXT, struct all_in, text, .min = 1, .max = 20),
    FIELD(FROM_BODY, KIND_LINE, struct all_in, line, .max = 5),
    FIELD(FROM_BODY, KIND_NUMBER, struct all_in, number),
    FIELD(FROM_BODY, KIND_NUMBER, struct all_in, share, .min = 0, .max = 1),
    FIELD(FROM_BODY, KIND_BOOL, struct all_in, flag),
    FIELD(FROM_BODY, KIND_TIME, struct all_in, time, .fallback = "now"),
    FIELD(FROM_BODY, KIND_UUID, struct all_in, uuid),
    FIELD(FROM_BODY, KIND_NAME, struct all_in, name),
    FIELD(FROM_BODY, KIND_CHOICE, struct all_in, choice, .choices = choices),
    FIELD(FROM_BODY, KIND_INT, struct all_in, count, .min = 1, .max = 10, .fallback = "3"),
    FIELD(FROM_BODY, KIND_INT, struct all_in, any_count),
    FIELD(FROM_BODY, KIND_TAGS, struct all_in, tags, .min = 1, .max = 3, .item_max = 4),
    FIELD(FROM_BODY, KIND_TEXTS, struct all_in, evidence, .item_max = 10),
    FIELD(FROM_BODY, KIND_UUIDS, struct all_in, ids, .max = 2),
    FIELD(FROM_BODY, KIND_OBJECT, struct all_in, outcome, SUB(outcome_fields, struct outcome_in)),
    FIELD(FROM_BODY, KIND_OBJECTS, struct all_in, points, .max = 3, SUB(point_fields, struct point_in)),
    FIELD(FROM_QUERY, KIND_TIME, struct all_in, as_of),
    FIELD(FROM_QUERY, KIND_CHOICE, struct all_in, status, .choices = choices),
    FIELD(FROM_QUERY, KIND_INT, struct all_in, limit, .min = 1, .max = 200, .fallback = "50"),
    FIELD(FROM_QUERY, KIND_INT, struct all_in, offset),
    FIELD(FROM_QUERY, KIND_TAGS, struct all_in, filter, .max = 4, .item_max = 5),
    FIELD(FROM_QUERY, KIND_CURSOR, struct all_in, cursor, .sub = cursor_fields),
    FIELD(COMPUTED, KIND_TEXT, struct all_in, computed),
    FIELD(FROM_BODY, KIND_KEY, struct all_in, key, .min = 1, .max = 12),
    FIELD(FROM_BODY, KIND_JSON, struct all_in, json, .min = 1, .max = 20),
    END_FIELDS,
};

static struct all_in in;
static struct problem problem;

static enum err decode_all(const char *body, size_t len, const struct pairs *path, const struct pairs *query)
{
    memset(&in, 0, sizeof in);
    problem = (struct problem){ .arena = &arena };
    char *exact = malloc(len + 1); /* exactly the size of the body, so that a read past the end is detected */
    char *heap = realloc(exact, len ? len : 1);
    memcpy(heap, body, len);
    enum err e = field_decode(fields,
                              &(struct field_input){ .path = path,
                                                     .query = query,
                                                     .body = heap,
                                                     .body_len = len,
                                                     .depth_limit = 8,
                                                     .now = "2026-06-04T10:00:00.000000Z",
                                                     .cursor_scope = 7 },
                              &arena, &in, &problem);
    free(heap);
    return e;
}

static enum err decode(const char *body)
{
    return decode_all(body, strlen(body), NULL, NULL);
}

/* "field: fault, field: fault" in the order of the report. */
static const char *faults(void)
{
    struct buf out = { .arena = &arena };
    for (const struct bad_field *bad = problem.first; bad; bad = bad->next)
        buf_fmt(&out, "%s%s: %s", out.len ? ", " : "", bad->field, problem_fault_code(bad->fault));
    return buf_string(&out);
}

static const char *param(const char *name)
{
    struct field_ref ref;
    return field_ref_find(fields, name, &ref) ? field_ref_value(&ref, &in, &arena) : NULL;
}

/* Each line of a data file: the expected result and the input. */
static void each_line(const char *file, int least, void (*check)(const char *expected, const char *sent))
{
    struct arena lines = { 0 };
    char *text = unit_file(&lines, file);
    int cases = 0;
    for (char *line; (line = unit_line(&text)); cases++) {
        char *column[2];
        unit_columns(line, column, 2);
        check(column[0], column[1]);
        arena_release(&arena);
    }
    ck_assert_int_ge(cases, least);
    arena_release(&lines);
}

static void check_faults(enum err e, const char *expected, const char *sent)
{
    ck_assert_msg(strcmp(faults(), expected) == 0, "%s has the faults \"%s\"", sent, faults());
    ck_assert_msg(e == (*expected ? ERR_INVALID_FIELDS : OK), "%s is %s", sent, problem_code(e));
}

/* ---- bodies that are not JSON ---- */

static void check_refused(const char *expected, const char *body)
{
    enum err e = decode(body);
    ck_assert_msg(strcmp(problem_code(e), expected) == 0, "%s is %s: %s", body, problem_code(e),
                  problem.detail);
    ck_assert_ptr_null(problem.first);
}

START_TEST(each_malformed_body_has_its_error)
{
    each_line("json/refused.tsv", 150, check_refused);
}
END_TEST

START_TEST(the_detail_names_the_position_and_what_was_expected)
{
    static const char *const cases[][2] = {
        { " \r\n\t ", "the body is empty: it must be a JSON object" },
        { "[]", "the body must be a JSON object" },
        { "null", "the body must be a JSON object" },
        { "5", "the body must be a JSON object" },
        { "{", "line 1, column 2: expected a key in double quotes or '}', found the end of the body" },
        { "{\n  \"a\" 1}", "line 2, column 7: expected ':', found '1'" },
        { "{\"a\":}", "line 1, column 6: expected a value, found '}'" },
        { "{\"a\":NaN}", "line 1, column 6: expected a value, found 'NaN'" },
        { "{\"a\":-Infinity}", "line 1, column 6: expected a number as JSON writes it, found '-Infinity'" },
        { "{\"a\":01}", "line 1, column 6: expected a number as JSON writes it, found '01'" },
        { "{\"a\":1,}", "line 1, column 8: expected a key in double quotes, found '}'" },
        { "{\"é\":1 ;}", "line 1, column 8: expected ',' or '}', found ';'" },
        { "{\"a\":[1 2]}", "line 1, column 9: expected ',' or ']', found '2'" },
        { "{\"a\":[1,]}", "line 1, column 9: expected a value, found ']'" },
        { "{} x", "line 1, column 4: expected the end of the body, found 'x'" },
        { "{}{}", "line 1, column 3: expected the end of the body, found '{'" },
        { "\xef\xbb\xbf{}", "line 1, column 1: expected a value, found the character U+FEFF" },
        { "{\"a\":\"x", "the string that starts at line 1, column 6 has no end" },
        { "{\"a\":\"\\ud800\"}", "line 1, column 7: half of a surrogate pair" },
        { "{\"a\":\"\\udc00\\udc00\"}", "line 1, column 7: half of a surrogate pair" },
        { "{\"a\":\"\\u00g0\"}", "line 1, column 7: \\u needs four hexadecimal digits" },
        { "{\"a\":\"\\u0000\"}", "line 1, column 7: \\u0000 cannot be stored" },
        { "{\"a\":\"\\x\"}", "line 1, column 7: not an escape that JSON knows" },
        { "{\"a\":\"\xff\"}", "the byte at offset 6 of the body is not valid UTF-8" },
        { "{\"a\":[[[[[[[[1]]]]]]]]}", "line 1, column 13: more than 8 levels of nesting" },
        { "{\"a\":1e309}", "line 1, column 6: a number has at most 64 characters and must fit a double" },
        { "{\"a\":1,\"b\":0.5,\n \"a\":2}", "line 2, column 2: the key \"a\" is there twice" },
        { "{\"x\":{\"k\\\"\":[1,2,3],\"k\\\"\":{}}}", "line 1, column 21: the key \"k\\\"\" is there twice" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_ne(decode(cases[i][0]), OK);
        ck_assert_str_eq(problem.detail, cases[i][1]);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_nul_byte_is_rejected_at_any_position)
{
    const char good[] = "{\"text\":\"a\"}";
    for (size_t at = 0; at < sizeof good - 1; at++) {
        char body[sizeof good];
        memcpy(body, good, sizeof good);
        body[at] = '\0';
        enum err e = decode_all(body, sizeof good - 1, NULL, NULL);
        ck_assert_msg(e == ERR_NULL_CHARACTER || e == ERR_INVALID_JSON, "%zu: %s", at, problem_code(e));
        if (at == 9)
            ck_assert_int_eq(e, ERR_NULL_CHARACTER);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_depth_limit_is_exact_and_holds_for_any_depth)
{
    for (int depth = 1; depth < 12; depth++) {
        struct buf body = { .arena = &arena };
        buf_text(&body, "{\"x\":");
        for (int i = 1; i < depth; i++)
            buf_char(&body, '[');
        for (int i = 1; i < depth; i++)
            buf_char(&body, ']');
        if (depth == 1)
            buf_text(&body, "1");
        buf_char(&body, '}');
        ck_assert_int_eq(decode(buf_string(&body)), depth <= 8 ? ERR_INVALID_FIELDS : ERR_TOO_DEEP);
    }
    char *deep = arena_alloc(&arena, 1000000);
    memset(deep, '[', 1000000);
    ck_assert_int_eq(decode_all(deep, 1000000, NULL, NULL), ERR_TOO_DEEP);
    arena_release(&arena);
}
END_TEST

START_TEST(a_truncated_body_is_never_valid)
{
    const char body[] = "{\"text\":\"a\\u00e9\\n\",\"number\":-1.50e+2,\"flag\":true,\"tags\":[\"x\",\"y\"],"
                        "\"outcome\":{\"metric\":\"m\",\"value\":1},\"uuid\":null}";
    ck_assert_int_eq(decode(body), OK);
    for (size_t len = 0; len < sizeof body - 1; len++) {
        enum err e = decode_all(body, len, NULL, NULL);
        ck_assert_msg(e == ERR_INVALID_JSON || len == 0, "%zu: %s", len, problem_code(e));
    }
    arena_release(&arena);
}
END_TEST

/* ---- keys and JSON values ---- */

START_TEST(a_key_has_letters_digits_and_a_few_signs)
{
    static const struct {
        const char *key;
        bool good;
    } cases[] = {
        { "a", true },
        { "_:./-", true },
        { "user.tz/42", true },
        { "A:b-C_9", true },
        { "", false },
        { ".", false },
        { "..", false },
        { "...", true },
        { "a b", false },
        { "123456789012", true },
        { "1234567890123", false },
        { "a%2Fb", false },
        { "\xc3\xa4", false },
        { "a\\nb", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum err e = decode(arena_fmt(&arena, "{\"key\":\"%s\"}", cases[i].key));
        ck_assert_msg((e == OK) == cases[i].good, "%s is %s", cases[i].key, problem_code(e));
        if (cases[i].good)
            ck_assert_str_eq(param("key"), cases[i].key);
        else
            ck_assert_str_eq(faults(), "key: invalid_name");
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_json_value_keeps_its_digits_and_loses_its_white_space)
{
    static const char *const cases[][2] = {
        { "1.10", "1.10" },
        { "\"a \\u00e9\\n\"", "\"a \xc3\xa9\\n\"" },
        { " { \"b\" : [ 1 , null ] } ", "{\"b\":[1,null]}" },
        { "[]", "[]" },
        { "{}", "{}" },
        { "true", "true" },
        { "[false,{\"\":-0}]", "[false,{\"\":-0}]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(decode(arena_fmt(&arena, "{\"json\":%s}", cases[i][0])), OK);
        ck_assert_str_eq(param("json"), cases[i][1]);
    }
    ck_assert_int_eq(decode("{\"json\":null}"), OK);
    ck_assert_ptr_null(in.json);
    ck_assert_int_eq(decode("{\"json\":[10000,10000, 100000]}"), OK);
    ck_assert_int_eq(decode("{\"json\":[10000,10000,1000000]}"), ERR_INVALID_FIELDS);
    ck_assert_str_eq(faults(), "json: too_long");
    arena_release(&arena);
}
END_TEST

/* ---- numbers ---- */

START_TEST(numbers_keep_every_digit)
{
    static const char *const numbers[] = { "0",
                                           "-0",
                                           "0.10",
                                           "1.0",
                                           "100",
                                           "-1.50",
                                           "1e5",
                                           "1E+5",
                                           "1e-5",
                                           "0.1000000000000000055511151231257827",
                                           "123456789012345678901234567890.123456789",
                                           "1e308",
                                           "-1.7976931348623157e308" };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ck_assert_msg(decode(arena_fmt(&arena, "{\"number\":%s}", numbers[i])) == OK, "%s", numbers[i]);
        ck_assert_str_eq(in.number, numbers[i]);
        ck_assert_str_eq(param("number"), numbers[i]);
        ck_assert_int_eq(decode(arena_fmt(&arena, "{ \"number\" :\t%s\n}", numbers[i])), OK);
        ck_assert_str_eq(in.number, numbers[i]);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_limits_of_a_number_are_exact)
{
    char digits[80];
    memset(digits, '1', sizeof digits);
    ck_assert_int_eq(decode(arena_fmt(&arena, "{\"number\":%.64s}", digits)), OK);
    ck_assert_int_eq(decode(arena_fmt(&arena, "{\"number\":%.65s}", digits)), ERR_NUMBER_OUT_OF_RANGE);
    ck_assert_int_eq(decode("{\"number\":1e308}"), OK);
    ck_assert_int_eq(decode("{\"number\":1e309}"), ERR_NUMBER_OUT_OF_RANGE);
    ck_assert_int_eq(decode("{\"number\":1e-308}"), OK);
    ck_assert_int_eq(decode("{\"number\":1e-309}"), ERR_NUMBER_OUT_OF_RANGE);
    ck_assert_int_eq(decode("{\"number\":17e307}"), OK);
    ck_assert_int_eq(decode("{\"number\":18e307}"), ERR_NUMBER_OUT_OF_RANGE);
    ck_assert_int_eq(decode("{\"number\":0.00000000000000000001e-308}"), ERR_NUMBER_OUT_OF_RANGE);
    ck_assert_int_eq(decode("{\"number\":0.000e-308}"), OK);
    ck_assert_int_eq(decode("{\"number\":1e00000000000000000000005}"), OK);
    ck_assert_int_eq(decode("{\"number\":1e99999999999999999999999}"), ERR_NUMBER_OUT_OF_RANGE);
    arena_release(&arena);
}
END_TEST

START_TEST(integers_are_recognised_by_value)
{
    static const struct {
        const char *lexeme;
        int64_t value;
    } whole[] = {
        { "0", 0 },
        { "-0", 0 },
        { "0.0", 0 },
        { "0e5", 0 },
        { "0.000e-300", 0 },
        { "7", 7 },
        { "-7", -7 },
        { "7.0", 7 },
        { "7.000", 7 },
        { "70e-1", 7 },
        { "0.7e1", 7 },
        { "0.007e3", 7 },
        { "1e3", 1000 },
        { "1.5e1", 15 },
        { "120e-1", 12 },
        { "9223372036854775807", INT64_MAX },
        { "9223372036854775807.00", INT64_MAX },
        { "-9223372036854775807", -INT64_MAX },
        { "922337203685477580.7e1", INT64_MAX },
        { "1e18", INT64_C(1000000000000000000) },
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        ck_assert_int_eq(decode(arena_fmt(&arena, "{\"any_count\":%s}", whole[i].lexeme)), OK);
        ck_assert_msg(in.any_count == whole[i].value, "%s is %lld", whole[i].lexeme, (long long)in.any_count);
        ck_assert_str_eq(param("any_count"), arena_fmt(&arena, "%lld", (long long)whole[i].value));
    }
    arena_release(&arena);
}
END_TEST

/* ---- fields of a body ---- */

static void check_body(const char *expected, const char *body)
{
    check_faults(decode(body), expected, body);
}

START_TEST(all_invalid_fields_of_a_body_are_reported_together)
{
    each_line("json/fields.tsv", 150, check_body);
}
END_TEST

START_TEST(every_kind_is_decoded)
{
    ck_assert_int_eq(
        decode("{\"text\":\"a\\nb\",\"line\":\"c\",\"number\":0.10,\"flag\":false,\"choice\":\"sim\","
               "\"time\":\"2026-06-04T10:00:00.5+02:00\",\"uuid\":\"01890A5D-AC96-774B-BCCE-B302099A8057\","
               "\"count\":7,\"tags\":[\"x\",\"y\"],\"ids\":[\"01890A5D-AC96-774B-BCCE-B302099A8057\"],"
               "\"points\":[{\"symbol\":\"A\",\"price\":1},{\"symbol\":\"B\",\"price\":2.50,\"size\":3}],"
               "\"outcome\":{\"metric\":\"m\",\"value\":1e3}}"),
        OK);
    ck_assert_str_eq(in.text, "a\nb");
    ck_assert_str_eq(in.line, "c");
    ck_assert_str_eq(in.number, "0.10");
    ck_assert_str_eq(in.flag, "false");
    ck_assert_str_eq(in.choice, "sim");
    ck_assert_str_eq(in.time, "2026-06-04T08:00:00.500000Z");
    ck_assert_str_eq(in.uuid, "01890a5d-ac96-774b-bcce-b302099a8057");
    ck_assert_int_eq(in.count, 7);
    ck_assert_uint_eq(in.tags.count, 2);
    ck_assert_str_eq(in.tags.items[0], "x");
    ck_assert_str_eq(in.tags.items[1], "y");
    ck_assert_str_eq(in.ids.items[0], "01890a5d-ac96-774b-bcce-b302099a8057");
    ck_assert_uint_eq(in.points.count, 2);
    const struct point_in *points = in.points.items;
    ck_assert_str_eq(points[0].symbol, "A");
    ck_assert(points[0].size == FIELD_NO_INT);
    ck_assert_str_eq(points[1].price, "2.50");
    ck_assert_int_eq(points[1].size, 3);
    ck_assert_str_eq(in.outcome->metric, "m");
    ck_assert_str_eq(in.outcome->value, "1e3");
    ck_assert_ptr_null(in.outcome->point);
    arena_release(&arena);
}
END_TEST

START_TEST(absent_fields_are_empty_or_have_their_fallback)
{
    static const char *const bodies[] = { "", "{}",
                                          "{\"text\":null,\"time\":null,\"count\":null,\"tags\":null}" };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        ck_assert_int_eq(decode(bodies[i]), OK);
        ck_assert_ptr_null(in.text);
        ck_assert_ptr_null(in.number);
        ck_assert_ptr_null(in.flag);
        ck_assert_ptr_null(in.outcome);
        ck_assert_ptr_null(in.tags.items);
        ck_assert_ptr_null(in.points.items);
        ck_assert_str_eq(in.time, "2026-06-04T10:00:00.000000Z");
        ck_assert_int_eq(in.count, 3);
        ck_assert(in.any_count == FIELD_NO_INT);
        ck_assert_int_eq(in.limit, 50);
        ck_assert_int_eq(in.cursor.count, 0);
        static const char *const names[] = { "text",     "number",   "flag",      "outcome",
                                             "tags",     "points",   "any_count", "uuid",
                                             "as_of",    "filter",   "cursor",    "cursor_1",
                                             "cursor_2", "computed", "none",      "cursor_3" };
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            ck_assert_msg(!param(names[k]), "%s", names[k]);
    }
    arena_release(&arena);
}
END_TEST

struct patch_in {
    const char *text;
    struct texts tags, cleared;
    struct outcome_in *outcome;
};

START_TEST(the_members_of_a_body_that_are_null_are_listed_by_name)
{
    static const struct field patch[] = {
        FIELD(FROM_BODY, KIND_TEXT, struct patch_in, text, .min = 1),
        FIELD(FROM_BODY, KIND_TAGS, struct patch_in, tags, .item_max = 8),
        FIELD(FROM_BODY, KIND_OBJECT, struct patch_in, outcome, SUB(outcome_fields, struct outcome_in)),
        FIELD(BODY_NULLS, KIND_TEXTS, struct patch_in, cleared),
        END_FIELDS,
    };
    static const struct {
        const char *body, *cleared;
    } cases[] = {
        { "", "{}" },
        { "{}", "{}" },
        { "{\"text\":\"a\",\"outcome\":{\"metric\":\"m\",\"value\":1,\"at\":null}}", "{}" },
        { "{\"tags\":null,\"text\":\"null\"}", "{\"tags\"}" },
        { "{\"outcome\":null,\"text\":null,\"tags\":[]}", "{\"text\",\"outcome\"}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct patch_in out = { 0 };
        const struct field_input input = { .body = cases[i].body,
                                           .body_len = strlen(cases[i].body),
                                           .depth_limit = 8 };
        problem = (struct problem){ .arena = &arena };
        ck_assert_int_eq(field_decode(patch, &input, &arena, &out, &problem), OK);
        ck_assert_str_eq(field_param(patch, &out, "cleared", &arena), cases[i].cleared);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_items_of_a_list_may_be_limited_to_choices)
{
    static const char *const states[] = { "open", "closed", NULL };
    static const struct field list[] = {
        FIELD(FROM_BODY, KIND_TAGS, struct patch_in, tags, .max = 3, .choices = states),
        END_FIELDS,
    };
    static const char good[] = "{\"tags\":[\"closed\",\"open\"]}";
    static const char bad[] = "{\"tags\":[\"open\",\"ajar\",\"open\"]}";
    struct patch_in out = { 0 };
    struct field_input input = { .body = good, .body_len = strlen(good), .depth_limit = 8 };
    problem = (struct problem){ .arena = &arena };
    ck_assert_int_eq(field_decode(list, &input, &arena, &out, &problem), OK);
    ck_assert_str_eq(field_param(list, &out, "tags", &arena), "{\"closed\",\"open\"}");
    input.body = bad;
    input.body_len = strlen(bad);
    ck_assert_int_eq(field_decode(list, &input, &arena, &out, &problem), ERR_INVALID_FIELDS);
    ck_assert_int_eq(problem.count, 2);
    ck_assert_str_eq(problem.first->field, "tags[1]");
    ck_assert_int_eq(problem.first->fault, FAULT_NOT_A_CHOICE);
    ck_assert_str_eq(problem.last->field, "tags[2]");
    ck_assert_int_eq(problem.last->fault, FAULT_DUPLICATE_ITEM);
    arena_release(&arena);
}
END_TEST

static const struct field strict[] = {
    FIELD(FROM_BODY, KIND_LINE, struct outcome_in, metric, .required = true, .min = 1, .max = 100),
    END_FIELDS,
};

START_TEST(a_missing_body_is_rejected_if_a_field_is_required)
{
    struct outcome_in out = { 0 };
    problem = (struct problem){ .arena = &arena };
    ck_assert_int_eq(field_decode(strict, &(struct field_input){ .depth_limit = 8 }, &arena, &out, &problem),
                     ERR_INVALID_JSON);
    ck_assert_str_eq(problem.detail, "the body is empty: it must be a JSON object");
    arena_release(&arena);
}
END_TEST

START_TEST(hundreds_of_invalid_fields_are_counted_and_only_some_reported)
{
    struct buf body = { .arena = &arena };
    buf_char(&body, '{');
    for (int i = 0; i < 20000; i++)
        buf_fmt(&body, "%s\"field_%d\":%d", i ? "," : "", i, i);
    buf_char(&body, '}');
    ck_assert_int_eq(decode(buf_string(&body)), ERR_INVALID_FIELDS);
    ck_assert_int_eq(problem.count, 20000);
    int kept = 0;
    for (const struct bad_field *bad = problem.first; bad; bad = bad->next)
        kept++;
    ck_assert_int_eq(kept, 100);
    arena_release(&arena);
}
END_TEST

/* ---- path and query ---- */

static void check_query(const char *expected, const char *text)
{
    struct uri uri;
    problem = (struct problem){ .arena = &arena };
    ck_assert_int_eq(uri_parse(arena_fmt(&arena, "/x?%s", text), &arena, &uri, &problem), OK);
    check_faults(decode_all("", 0, NULL, &uri.query), expected, text);
}

START_TEST(all_invalid_fields_of_a_query_are_reported_together)
{
    each_line("json/queries.tsv", 50, check_query);
}
END_TEST

START_TEST(queries_and_paths_are_decoded)
{
    struct pair path = { "id", "01890A5D-AC96-774B-BCCE-B302099A8057" };
    struct pair pairs[] = { { "filter", "a,b" }, { "limit", "7" }, { "filter", "c" } };
    ck_assert_int_eq(decode_all("", 0, &(struct pairs){ 1, &path }, &(struct pairs){ 3, pairs }), OK);
    ck_assert_str_eq(in.id, "01890a5d-ac96-774b-bcce-b302099a8057");
    ck_assert_int_eq(in.limit, 7);
    ck_assert_uint_eq(in.filter.count, 3);
    ck_assert_str_eq(param("filter"), "{\"a\",\"b\",\"c\"}");
    path.value = "1";
    ck_assert_int_eq(decode_all("", 0, &(struct pairs){ 1, &path }, NULL), ERR_INVALID_FIELDS);
    ck_assert_str_eq(faults(), "id: invalid_uuid");
    arena_release(&arena);
}
END_TEST

START_TEST(invalid_fields_of_body_path_and_query_are_reported_together)
{
    struct pair path = { "id", "1" }, pair = { "limit", "0" };
    ck_assert_int_eq(decode_all("{\"x\":1}", 7, &(struct pairs){ 1, &path }, &(struct pairs){ 1, &pair }),
                     ERR_INVALID_FIELDS);
    ck_assert_str_eq(faults(), "x: unknown_field, id: invalid_uuid, limit: out_of_range");
    arena_release(&arena);
}
END_TEST

START_TEST(a_lost_plus_in_a_query_is_explained)
{
    struct pair pair = { "as_of", "2026-06-04T10:00:00 02:00" };
    ck_assert_int_eq(decode_all("", 0, NULL, &(struct pairs){ 1, &pair }), ERR_INVALID_FIELDS);
    ck_assert_ptr_nonnull(strstr(problem.first->detail, "%2B"));
    pair.value = "2026-06-04 10:00";
    ck_assert_int_eq(decode_all("", 0, NULL, &(struct pairs){ 1, &pair }), ERR_INVALID_FIELDS);
    ck_assert_ptr_null(strstr(problem.first->detail, "%2B"));
    arena_release(&arena);
}
END_TEST

/* The detail of the only fault of a body, and of a query of one pair. */
static const char *detail_of(const char *body)
{
    ck_assert_int_eq(decode(body), ERR_INVALID_FIELDS);
    ck_assert_int_eq(problem.count, 1);
    return problem.first->detail;
}

static const char *query_detail(const char *name, const char *value)
{
    struct pair pair = { name, value };
    ck_assert_int_eq(decode_all("", 0, NULL, &(struct pairs){ 1, &pair }), ERR_INVALID_FIELDS);
    return problem.first->detail;
}

START_TEST(a_misspelled_name_or_choice_gets_a_suggestion)
{
    ck_assert_str_eq(detail_of("{\"evidense\":[]}"),
                     "is not a field of this body; did you mean \"evidence\"?");
    ck_assert_str_eq(detail_of("{\"anyCount\":1}"),
                     "is not a field of this body; did you mean \"any_count\"?");
    ck_assert_str_eq(detail_of("{\"points\":[{\"symbol\":\"A\",\"price\":1,\"note\":[]}]}"),
                     "is not a field of this object; did you mean \"notes\"?");
    ck_assert_str_eq(query_detail("Limit", "5"), "is not a parameter of this path; did you mean \"limit\"?");
    ck_assert_str_eq(query_detail("asOf", "x"), "is not a parameter of this path; did you mean \"as_of\"?");
    ck_assert_str_eq(detail_of("{\"choice\":\"Live\"}"),
                     "must be one of live, paper, sim; did you mean \"live\"?");
    ck_assert_str_eq(query_detail("status", "papper"),
                     "must be one of live, paper, sim; did you mean \"paper\"?");
    /* a name of another position, or not a close one */
    ck_assert_str_eq(detail_of("{\"limit\":1}"), "is not a field of this body");
    ck_assert_str_eq(detail_of("{\"computed\":1}"), "is not a field of this body");
    ck_assert_str_eq(query_detail("evidence", "x"), "is not a parameter of this path");
    ck_assert_str_eq(detail_of("{\"choice\":\"dead\"}"), "must be one of live, paper, sim");
    arena_release(&arena);
}
END_TEST

START_TEST(the_detail_names_the_missing_part_of_a_time)
{
    static const char *const cases[][2] = {
        { "2026-06-04T10:00:00", "has no time zone: write 2026-06-04T10:00:00Z" },
        { "2026-06-04T10:00:00.25", "has no time zone: write 2026-06-04T10:00:00.25Z" },
        { "2026-06-04 10:00:00", "has no time zone: write 2026-06-04T10:00:00Z" },
        { "2026-06-04T10:00", "has no seconds and no time zone: write 2026-06-04T10:00:00Z" },
        { "2026-06-04", "is a date without a time of day: write 2026-06-04T00:00:00Z" },
        { "2026-06-04 10:00:00Z", "has no T between its date and its time: write 2026-06-04T10:00:00Z" },
        { "2026-06-31", "is not an RFC 3339 time such as 2026-06-04T10:00:00Z" },
        { "2026-06-31T10:00:00", "is not an RFC 3339 time such as 2026-06-04T10:00:00Z" },
        { "yesterday", "is not an RFC 3339 time such as 2026-06-04T10:00:00Z" },
        { "", "is not an RFC 3339 time such as 2026-06-04T10:00:00Z" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(detail_of(arena_fmt(&arena, "{\"time\":\"%s\"}", cases[i][0])), cases[i][1]);
        ck_assert_str_eq(query_detail("as_of", cases[i][0]), cases[i][1]);
        ck_assert_int_eq(problem.first->fault, FAULT_INVALID_TIME);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_detail_points_out_a_quoted_number_or_boolean)
{
    ck_assert_str_eq(detail_of("{\"number\":\"0.10\"}"),
                     "must be a number, is a text: write 0.10 without quotes");
    ck_assert_str_eq(detail_of("{\"count\":\"5\"}"),
                     "must be a whole number, is a text: write 5 without quotes");
    ck_assert_str_eq(detail_of("{\"flag\":\"true\"}"),
                     "must be true or false, is a text: write true without quotes");
    ck_assert_str_eq(detail_of("{\"number\":\"ten\"}"), "must be a number, is a text");
    ck_assert_str_eq(detail_of("{\"number\":\"\"}"), "must be a number, is a text");
    ck_assert_str_eq(detail_of("{\"flag\":\"yes\"}"), "must be true or false, is a text");
    ck_assert_str_eq(detail_of("{\"flag\":1}"), "must be true or false, is a number");
    arena_release(&arena);
}
END_TEST

static enum err decode_cursor(const char *first, const char *second, uint64_t scope)
{
    struct cursor_values values = { .count = second ? 2 : 1, .value = { first, second } };
    struct buf text = { .arena = &arena };
    cursor_encode(&text, &values, scope);
    struct pair pair = { "cursor", buf_string(&text) };
    return decode_all("", 0, NULL, &(struct pairs){ 1, &pair });
}

START_TEST(a_cursor_is_accepted_only_for_its_own_list_with_valid_values)
{
    const char *at = "2026-06-04T10:00:00.000000Z", *id = "01890a5d-ac96-774b-bcce-b302099a8057";
    ck_assert_int_eq(decode_cursor(at, id, 7), OK);
    ck_assert_str_eq(param("cursor_1"), at);
    ck_assert_str_eq(param("cursor_2"), id);
    ck_assert_ptr_null(param("cursor_3"));
    ck_assert_ptr_null(param("cursor_12"));
    ck_assert_int_eq(decode_cursor(at, id, 8), ERR_INVALID_FIELDS);
    ck_assert_int_eq(decode_cursor(id, at, 7), ERR_INVALID_FIELDS);
    ck_assert_int_eq(decode_cursor(at, NULL, 7), ERR_INVALID_FIELDS);
    ck_assert_int_eq(decode_cursor(at, "'; drop table lessons", 7), ERR_INVALID_FIELDS);
    ck_assert_str_eq(faults(), "cursor: invalid_cursor");
    arena_release(&arena);
}
END_TEST

/* ---- parameters ---- */

START_TEST(arrays_are_quoted_so_that_postgresql_reads_them_back)
{
    ck_assert_int_eq(decode("{\"evidence\":[\"a,b\",\"q\\\"\\\\\",\"{}\",\"null\",\" x \",\"é\"]}"), OK);
    ck_assert_str_eq(param("evidence"), "{\"a,b\",\"q\\\"\\\\\",\"{}\",\"null\",\" x \",\"é\"}");
    ck_assert_int_eq(decode("{\"evidence\":[]}"), OK);
    ck_assert_str_eq(param("evidence"), "{}");
    arena_release(&arena);
}
END_TEST

START_TEST(objects_become_json_in_the_order_of_the_table)
{
    ck_assert_int_eq(
        decode("{\"outcome\":{\"value\":0.10,\"metric\":\"\\\"q\\\"\",\"at\":\"2026-06-04T10:00:00+01:00\","
               "\"point\":{\"price\":1E+2,\"symbol\":\"B\",\"notes\":[\"x\",\"y\"]}}}"),
        OK);
    ck_assert_str_eq(param("outcome"),
                     "{\"metric\":\"\\\"q\\\"\",\"value\":0.10,\"at\":\"2026-06-04T09:00:00.000000Z\","
                     "\"point\":{\"symbol\":\"B\",\"price\":1E+2,\"size\":null,"
                     "\"notes\":[\"x\",\"y\"]},\"sample_size\":null}");
    ck_assert_int_eq(decode("{\"outcome\":{\"value\":1,\"metric\":\"m\",\"sample_size\":3.0}}"), OK);
    ck_assert_str_eq(param("outcome"),
                     "{\"metric\":\"m\",\"value\":1,\"at\":null,\"point\":null,\"sample_size\":3}");
    ck_assert_int_eq(
        decode("{\"points\":[{\"symbol\":\"A\",\"price\":0.10},{\"symbol\":\"B\",\"price\":2,\"size\":-4}]}"),
        OK);
    ck_assert_str_eq(param("points"), "[{\"symbol\":\"A\",\"price\":0.10,\"size\":null,\"notes\":null},"
                                      "{\"symbol\":\"B\",\"price\":2,\"size\":-4,\"notes\":null}]");
    ck_assert_int_eq(decode("{\"points\":[]}"), OK);
    ck_assert_str_eq(param("points"), "[]");
    arena_release(&arena);
}
END_TEST

START_TEST(rows_are_found_by_name)
{
    ck_assert_ptr_eq(field_find(fields, "id"), &fields[0]);
    ck_assert_ptr_eq(field_find(fields, "text"), &fields[1]);
    ck_assert_ptr_null(field_find(fields, "symbol"));
    ck_assert_ptr_null(field_find(fields, ""));
    in.computed = "set by the handler";
    ck_assert_str_eq(param("computed"), "set by the handler");
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("field", a_key_has_letters_digits_and_a_few_signs,
          a_json_value_keeps_its_digits_and_loses_its_white_space, each_malformed_body_has_its_error,
          the_detail_names_the_position_and_what_was_expected, a_nul_byte_is_rejected_at_any_position,
          the_depth_limit_is_exact_and_holds_for_any_depth, a_truncated_body_is_never_valid,
          numbers_keep_every_digit, the_limits_of_a_number_are_exact, integers_are_recognised_by_value,
          all_invalid_fields_of_a_body_are_reported_together, every_kind_is_decoded,
          absent_fields_are_empty_or_have_their_fallback,
          the_members_of_a_body_that_are_null_are_listed_by_name,
          the_items_of_a_list_may_be_limited_to_choices, a_missing_body_is_rejected_if_a_field_is_required,
          hundreds_of_invalid_fields_are_counted_and_only_some_reported,
          all_invalid_fields_of_a_query_are_reported_together, queries_and_paths_are_decoded,
          invalid_fields_of_body_path_and_query_are_reported_together,
          a_misspelled_name_or_choice_gets_a_suggestion, the_detail_names_the_missing_part_of_a_time,
          the_detail_points_out_a_quoted_number_or_boolean, a_lost_plus_in_a_query_is_explained,
          a_cursor_is_accepted_only_for_its_own_list_with_valid_values,
          arrays_are_quoted_so_that_postgresql_reads_them_back, objects_become_json_in_the_order_of_the_table,
          rows_are_found_by_name)

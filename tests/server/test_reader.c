/* The JSON reader: finds the requested values, reports errors at their offset, and survives any input. */
#include "server/json/reader.h"

#include "core/base/buf.h"
#include "server/json/number.h"
#include "tests/core/unit.h"

static struct arena arena;

/* Writes the whole document in a canonical form. */
static void show(struct json_reader *r, struct buf *out)
{
    double number;
    switch (reader_peek(r)) {
    case '{':
        reader_object(r);
        buf_char(out, '{');
        for (const char *name; (name = reader_name(r));) {
            buf_fmt(out, "%s=", name);
            show(r, out);
            buf_char(out, ';');
        }
        buf_char(out, '}');
        return;
    case '[':
        reader_list(r);
        buf_char(out, '[');
        while (reader_item(r)) {
            show(r, out);
            buf_char(out, ';');
        }
        buf_char(out, ']');
        return;
    case '"': {
        const char *text = reader_text(r);
        buf_fmt(out, "'%s'", text ? text : "(bad)");
        return;
    }
    default:
        if (reader_number(r, &number))
            buf_fmt(out, "%g", number);
        else
            buf_char(out, '-');
    }
}

static const char *shown(const char *text)
{
    char *copy = arena_text(&arena, text);
    struct buf out = { .arena = &arena };
    struct json_reader r = reader_begin(copy, strlen(copy), READER_DEPTH);
    show(&r, &out);
    return reader_ended(&r) ? buf_string(&out) : NULL;
}

START_TEST(values_of_every_kind_are_read)
{
    static const struct {
        const char *text, *shown;
    } documents[] = {
        { "{}", "{}" },
        { " [ ] ", "[]" },
        { "{\"a\":1,\"b\":[true,null,false],\"c\":{\"d\":\"x\"}}", "{a=1;b=[-;-;-;];c={d='x';};}" },
        { "\t{\r\n \"a\" : -1.5e2 , \"b\" : \"\" }\n", "{a=-150;b='';}" },
        { "[\"\\u00e9\\n\\\"\\\\ \\ud83d\\ude80\",0]", "['\xc3\xa9\n\"\\ \xf0\x9f\x9a\x80';0;]" },
        { "[[[[]]],1e400]", "[[[[];];];inf;]" },
        { "\"text\"", "'text'" },
        { "7", "7" },
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const char *found = shown(documents[i].text);
        ck_assert_msg(found != NULL, "refused: %s", documents[i].text);
        ck_assert_str_eq(found, documents[i].shown);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(invalid_json_is_refused)
{
    static const char *const bad[] = {
        "",           " ",         "{",           "}",       "[",           "[1",           "[1,",
        "[1,]",       "[,1]",      "[1 2]",       "{\"a\"}", "{\"a\":}",    "{\"a\":1,}",   "{a:1}",
        "{\"a\" 1}",  "{} {}",     "[NaN]",       "[inf]",   "[-]",         "[0x10]",       "[nul]",
        "[Infinity]", "\"open",    "\"\\u0000\"", "\"\\q\"", "\"\\ud800\"", "\"\\udc00x\"", "\"\xff\"",
        "[1}",        "{\"a\":1]", "x",           "[-inf]",  "[1]\xc3",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!shown(bad[i]), "taken: %s", bad[i]);
    char nul[] = "[1]\0[2]";
    struct json_reader r = reader_begin(nul, sizeof nul - 1, READER_DEPTH);
    reader_skip(&r);
    ck_assert(!reader_ended(&r));
    arena_release(&arena);
}
END_TEST

START_TEST(nesting_is_limited)
{
    char text[10000];
    for (int depth = 1; depth < 5000; depth *= 2) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        struct json_reader r = reader_begin(text, 2 * (size_t)depth, READER_DEPTH);
        reader_skip(&r);
        ck_assert_int_eq(reader_ended(&r), depth <= 64);
    }
}
END_TEST

START_TEST(values_of_an_unexpected_kind_are_skipped)
{
    char text[] = "[[1,[2]],{\"a\":{}},\"x\",5,-1,1.5,\"9\",null,1e18]";
    struct json_reader r = reader_begin(text, sizeof text - 1, READER_DEPTH);
    double number;
    ck_assert(reader_list(&r));
    ck_assert(reader_item(&r) && !reader_text(&r));
    ck_assert(reader_item(&r) && !reader_number(&r, &number));
    ck_assert(reader_item(&r) && !reader_object(&r));
    ck_assert(reader_item(&r) && reader_count(&r) == 5);
    for (int i = 0; i < 5; i++)
        ck_assert(reader_item(&r) && reader_count(&r) == 0);
    ck_assert(!reader_item(&r));
    ck_assert(reader_ended(&r));
}
END_TEST

START_TEST(numbers_and_literals_are_read_verbatim)
{
    char text[] = "{\"a\":-1.50e+2,\"b\":[7,0.10],\"c\":true ,\"d\":null,\"e\":\"5\"}";
    struct json_reader r = reader_begin(text, sizeof text - 1, READER_DEPTH);
    size_t len;
    ck_assert(reader_object(&r));
    ck_assert_str_eq(reader_name(&r), "a");
    const char *first = reader_lexeme(&r);
    ck_assert_str_eq(reader_name(&r), "b");
    ck_assert(reader_list(&r) && reader_item(&r));
    ck_assert_str_eq(reader_lexeme(&r), "7");
    ck_assert(reader_item(&r));
    const char *digits = reader_digits(&r, &len);
    ck_assert(len == 4 && memcmp(digits, "0.10", 4) == 0);
    ck_assert(!reader_item(&r));
    ck_assert_str_eq(reader_name(&r), "c");
    ck_assert_str_eq(reader_word(&r), "true");
    ck_assert_str_eq(reader_name(&r), "d");
    ck_assert_str_eq(reader_word(&r), "null");
    ck_assert_str_eq(reader_name(&r), "e");
    ck_assert_ptr_null(reader_word(&r));
    ck_assert_ptr_null(reader_name(&r));
    ck_assert(reader_ended(&r));
    ck_assert_str_eq(first, "-1.50e+2"); /* later reads have not overwritten it */
}
END_TEST

START_TEST(a_wrong_guess_of_a_name_is_only_slower)
{
    static const char guess[] = "name";
    static const char *const names[] = { "name", "nam", "names", "n\\u0061me", "", "x" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int spaced = 0; spaced < 2; spaced++) {
            char *text =
                arena_fmt(&arena, spaced ? "{ \"a\" : 1 , \"%s\" : 2 }" : "{\"a\":1,\"%s\":2}", names[i]);
            struct json_reader r = reader_begin(text, strlen(text), READER_DEPTH);
            ck_assert(reader_object(&r));
            ck_assert_str_eq(reader_name_guess(&r, guess, 4), "a");
            reader_skip(&r);
            ck_assert_str_eq(reader_name_guess(&r, guess, 4), i == 3 ? "name" : names[i]);
            ck_assert_int_eq(reader_count(&r), 2);
            ck_assert_ptr_null(reader_name_guess(&r, guess, 4));
            ck_assert(reader_ended(&r));
        }
    char cut[] = "{,\"name\":1}";
    struct json_reader r = reader_begin(cut, sizeof cut - 1, READER_DEPTH);
    ck_assert(reader_object(&r));
    ck_assert_ptr_null(reader_name_guess(&r, guess, 4));
    ck_assert(!reader_ended(&r));
    arena_release(&arena);
}
END_TEST

START_TEST(the_first_error_is_reported_with_its_offset)
{
    static const struct {
        const char *text;
        enum reader_fault fault;
        size_t offset;
    } cases[] = {
        { "[1 2]", READER_UNEXPECTED, 3 },
        { "{\"a\":\"\\n\\n\", b}", READER_UNEXPECTED,
          13 }, /* an offset in the original text, before unescaping */
        { "[\"\\n\\q\"]", READER_ESCAPE, 4 },
        { "[\"\\u12\"]", READER_HEX, 2 },
        { "[\"a\\ud800\"]", READER_SURROGATE, 3 },
        { "[\"\\u0000\"]", READER_NUL, 2 },
        { "[ \"open", READER_OPEN_STRING, 2 },
        { "[\"\x01\"]", READER_UNEXPECTED, 2 },
        { "[\"\xff\"]", READER_UTF8, 2 },
        { "[01]", READER_UNEXPECTED, 1 },
        { "[1]]", READER_UNEXPECTED, 3 },
        { "[[[[1]]]]", READER_DEPTH_LIMIT, 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = arena_text(&arena, cases[i].text);
        struct json_reader r = reader_begin(text, strlen(text), 3);
        reader_skip(&r);
        ck_assert(!reader_ended(&r) && !reader_ended(&r));
        ck_assert_msg(r.fault == cases[i].fault && r.fault_offset == cases[i].offset, "%s: %d at %zu",
                      cases[i].text, (int)r.fault, r.fault_offset);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_double_is_the_nearest_one_to_the_digits)
{
    static const char *const numbers[] = {
        "0",       "-0",      "7",          "-1.5",     "0.1",       "9007199254740992",
        "1e22",    "1e23",    "0.3e-5",     "1e308",    "5e-324",    "9007199254740993",
        "123.456", "1e-400",  "1e400",      "0.000001", "1E+2",      "0.0000000000000000000000123",
        "4.35",    "8.5e-10", "1234567.25", "0.07",     "-0.000964", "123456789012345678901234567890",
    };
    srand(1);
    for (int i = 0; i < 20000; i++) {
        char text[40];
        if (i < (int)(sizeof numbers / sizeof *numbers))
            snprintf(text, sizeof text, "%s", numbers[i]);
        else
            snprintf(text, sizeof text, "%.*f", rand() % 20,
                     (rand() - RAND_MAX / 2) / (1.0 + rand() % 100000));
        size_t len = number_len(text);
        double mine = number_double(text, len), right = strtod(text, NULL);
        HOLDS(len == strlen(text) && memcmp(&mine, &right, sizeof mine) == 0);
    }
}
END_TEST

UNIT_MAIN("reader", values_of_every_kind_are_read, invalid_json_is_refused, nesting_is_limited,
          values_of_an_unexpected_kind_are_skipped, numbers_and_literals_are_read_verbatim,
          a_wrong_guess_of_a_name_is_only_slower, the_first_error_is_reported_with_its_offset,
          a_double_is_the_nearest_one_to_the_digits)

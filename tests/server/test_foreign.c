/* Documents of other servers: what is asked for is found, and nothing breaks the reader. */
#include "server/json/foreign.h"

#include "core/base/buf.h"
#include "tests/core/unit.h"

static struct arena arena;

/* Everything that it holds, written out again in a form of our own. */
static void show(struct foreign *f, struct buf *out)
{
    double number;
    switch (foreign_peek(f)) {
    case '{':
        foreign_object(f);
        buf_char(out, '{');
        for (const char *name; (name = foreign_name(f));) {
            buf_fmt(out, "%s=", name);
            show(f, out);
            buf_char(out, ';');
        }
        buf_char(out, '}');
        return;
    case '[':
        foreign_list(f);
        buf_char(out, '[');
        while (foreign_item(f)) {
            show(f, out);
            buf_char(out, ';');
        }
        buf_char(out, ']');
        return;
    case '"': {
        const char *text = foreign_text(f);
        buf_fmt(out, "'%s'", text ? text : "(bad)");
        return;
    }
    default:
        if (foreign_number(f, &number))
            buf_fmt(out, "%g", number);
        else
            buf_char(out, '-');
    }
}

static const char *shown(const char *text)
{
    char *copy = arena_text(&arena, text);
    struct buf out = { .arena = &arena };
    struct foreign f = foreign_begin(copy, strlen(copy));
    show(&f, &out);
    return foreign_ended(&f) ? buf_string(&out) : NULL;
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

START_TEST(what_is_not_json_is_refused)
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
    struct foreign f = foreign_begin(nul, sizeof nul - 1);
    foreign_skip(&f);
    ck_assert(!foreign_ended(&f));
    arena_release(&arena);
}
END_TEST

START_TEST(nesting_has_an_end)
{
    char text[10000];
    for (int depth = 1; depth < 5000; depth *= 2) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        struct foreign f = foreign_begin(text, 2 * (size_t)depth);
        foreign_skip(&f);
        ck_assert_int_eq(foreign_ended(&f), depth <= 64);
    }
}
END_TEST

START_TEST(values_of_another_kind_than_asked_for_are_passed_by)
{
    char text[] = "[[1,[2]],{\"a\":{}},\"x\",5,-1,1.5,\"9\",null,1e18]";
    struct foreign f = foreign_begin(text, sizeof text - 1);
    double number;
    ck_assert(foreign_list(&f));
    ck_assert(foreign_item(&f) && !foreign_text(&f));
    ck_assert(foreign_item(&f) && !foreign_number(&f, &number));
    ck_assert(foreign_item(&f) && !foreign_object(&f));
    ck_assert(foreign_item(&f) && foreign_count(&f) == 5);
    for (int i = 0; i < 5; i++)
        ck_assert(foreign_item(&f) && foreign_count(&f) == 0);
    ck_assert(!foreign_item(&f));
    ck_assert(foreign_ended(&f));
}
END_TEST

UNIT_MAIN("foreign", values_of_every_kind_are_read, what_is_not_json_is_refused, nesting_has_an_end,
          values_of_another_kind_than_asked_for_are_passed_by)

/* Request targets. */
#include "server/dispatch/uri.h"
#include "tests/core/unit.h"

static struct arena arena;
static struct uri uri;
static struct problem problem;

static enum err parse(const char *target)
{
    problem = (struct problem){ .arena = &arena };
    char *exact = strdup(target); /* on the heap, so that a read past the end is detected */
    enum err e = uri_parse(exact, &arena, &uri, &problem);
    free(exact);
    return e;
}

/* "|v1|lessons?limit=5&tags=a", all decoded: a slash is inside its segment. */
static const char *shown(void)
{
    struct buf out = { .arena = &arena };
    for (size_t i = 0; i < uri.segments; i++)
        buf_fmt(&out, "|%s", uri.segment[i]);
    for (size_t i = 0; i < uri.query.count; i++)
        buf_fmt(&out, "%s%s=%s", i ? "&" : "?", uri.query.items[i].name, uri.query.items[i].value);
    return buf_string(&out);
}

static const struct {
    const char *target, *path, *shown;
} good[] = {
    { "/", "/", "" },
    { "/v1/lessons", "/v1/lessons", "|v1|lessons" },
    { "/v1/lessons/", "/v1/lessons/", "|v1|lessons|" },
    { "//", "//", "||" },
    { "//v1", "//v1", "||v1" },
    { "/v1//lessons", "/v1//lessons", "|v1||lessons" },
    { "/a%20b", "/a%20b", "|a b" },
    { "/a+b", "/a+b", "|a+b" },
    { "/a%2Fb/c", "/a%2Fb/c", "|a/b|c" },
    { "/a%2fb", "/a%2fb", "|a/b" },
    { "/%c3%a9/\xc3\xa9", "/%c3%a9/\xc3\xa9", "|é|é" },
    { "/%25%32%35", "/%25%32%35", "|%25" },
    { "/a;b=1,c:@!$&'()*", "/a;b=1,c:@!$&'()*", "|a;b=1,c:@!$&'()*" },
    { "/.", "/.", "|." },
    { "/../etc", "/../etc", "|..|etc" },
    { "/x?", "/x", "|x" },
    { "/?a=1", "/", "?a=1" },
    { "/x?a=1&b=2", "/x", "|x?a=1&b=2" },
    { "/x?a=1&a=2", "/x", "|x?a=1&a=2" },
    { "/x?a", "/x", "|x?a=" },
    { "/x?a=", "/x", "|x?a=" },
    { "/x?=a", "/x", "|x?=a" },
    { "/x?&", "/x", "|x" },
    { "/x?&&a=1&&b=2&", "/x", "|x?a=1&b=2" },
    { "/x?a=b=c", "/x", "|x?a=b=c" },
    { "/x?a%3Db=%26&c=%3d", "/x", "|x?a=b=&&c==" },
    { "/x?a=b+c%2Bd%20e", "/x", "|x?a=b c+d e" },
    { "/x?a+b=1", "/x", "|x?a b=1" },
    { "/x?a=/b?c", "/x", "|x?a=/b?c" },
    { "/x?a=%C3%A9&b=\xc3\xa9", "/x", "|x?a=é&b=é" },
    { "/x?a=%0A%01", "/x", "|x?a=\n\x01" },
    { "http://host/v1/x?a=1", "/v1/x", "|v1|x?a=1" },
    { "https://host:8443/v1", "/v1", "|v1" },
    { "http://host", "/", "" },
    { "http://host?a=1", "/", "?a=1" },
    { "http://host/", "/", "" },
    { "/http://host/x", "/http://host/x", "|http:||host|x" },
    { "*", "*", "" },
};

START_TEST(targets_are_split_before_they_are_decoded)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(parse(good[i].target) == OK, "refused: %s", good[i].target);
        ck_assert_str_eq(uri.path, good[i].path);
        ck_assert_msg(strcmp(shown(), good[i].shown) == 0, "%s is %s", good[i].target, shown());
    }
    arena_release(&arena);
}
END_TEST

static const struct {
    const char *target;
    enum err error;
} bad[] = {
    { "", ERR_BAD_REQUEST },
    { "x", ERR_BAD_REQUEST },
    { "v1/lessons", ERR_BAD_REQUEST },
    { "?a=1", ERR_BAD_REQUEST },
    { "**", ERR_BAD_REQUEST },
    { "*?a=1", ERR_BAD_REQUEST },
    { "ftp://host/x", ERR_BAD_REQUEST },
    { "http:/host", ERR_BAD_REQUEST },
    { "/x#y", ERR_BAD_REQUEST },
    { "/x?a=1#y", ERR_BAD_REQUEST },
    { "http://host#y", ERR_BAD_REQUEST },
    { "/%", ERR_BAD_REQUEST },
    { "/%2", ERR_BAD_REQUEST },
    { "/%2/", ERR_BAD_REQUEST },
    { "/%g0", ERR_BAD_REQUEST },
    { "/%0g", ERR_BAD_REQUEST },
    { "/%%20", ERR_BAD_REQUEST },
    { "/%+1", ERR_BAD_REQUEST },
    { "/x?a=%", ERR_BAD_REQUEST },
    { "/x?a=%4", ERR_BAD_REQUEST },
    { "/x?a=%4&b=1", ERR_BAD_REQUEST },
    { "/x?%zz=1", ERR_BAD_REQUEST },
    { "/%u0041", ERR_BAD_REQUEST },
    { "/%00", ERR_NULL_CHARACTER },
    { "/a%00b", ERR_NULL_CHARACTER },
    { "/x?a=%00", ERR_NULL_CHARACTER },
    { "/x?%00=a", ERR_NULL_CHARACTER },
    { "/%ff", ERR_INVALID_UTF8 },
    { "/%c3", ERR_INVALID_UTF8 },
    { "/%c3/%a9", ERR_INVALID_UTF8 },
    { "/%c3%28", ERR_INVALID_UTF8 },
    { "/%c0%af", ERR_INVALID_UTF8 },
    { "/%ed%a0%80", ERR_INVALID_UTF8 },
    { "/%f4%90%80%80", ERR_INVALID_UTF8 },
    { "/\xff", ERR_INVALID_UTF8 },
    { "/x?a=%ff", ERR_INVALID_UTF8 },
    { "/x?%c3=%a9", ERR_INVALID_UTF8 },
    { "/x?a=\xc0\x80", ERR_INVALID_UTF8 },
};

START_TEST(each_invalid_target_has_its_error)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum err e = parse(bad[i].target);
        ck_assert_msg(e == bad[i].error, "%s is %s", bad[i].target, problem_code(e));
        ck_assert_ptr_nonnull(problem.detail);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(every_escape_is_the_byte_it_names)
{
    for (int c = 1; c < 128; c++) {
        char expected[2] = { (char)c, '\0' };
        ck_assert_int_eq(parse(arena_fmt(&arena, "/%%%02x?a=%%%02X", (unsigned)c, (unsigned)c)), OK);
        ck_assert_uint_eq(uri.segments, 1);
        ck_assert_str_eq(uri.segment[0], expected);
        ck_assert_str_eq(uri.query.items[0].value, expected);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_numbers_of_segments_and_parameters_have_exact_limits)
{
    for (int count = 1; count <= URI_SEGMENTS + 2; count++) {
        struct buf target = { .arena = &arena };
        for (int i = 0; i < count; i++)
            buf_fmt(&target, "/s%d", i);
        ck_assert_int_eq(parse(buf_string(&target)), count <= URI_SEGMENTS ? OK : ERR_BAD_REQUEST);
        if (count <= URI_SEGMENTS)
            ck_assert_uint_eq(uri.segments, (size_t)count);
    }
    for (int count = URI_PAIRS - 1; count <= URI_PAIRS + 2; count++) {
        struct buf target = { .arena = &arena };
        buf_text(&target, "/x?");
        for (int i = 0; i < count; i++)
            buf_fmt(&target, "&p%d=%d", i, i);
        ck_assert_int_eq(parse(buf_string(&target)), count <= URI_PAIRS ? OK : ERR_BAD_REQUEST);
        if (count <= URI_PAIRS)
            ck_assert_uint_eq(uri.query.count, (size_t)count);
    }
    char *slashes = arena_alloc(&arena, 100001);
    memset(slashes, '/', 100000);
    slashes[100000] = '\0';
    ck_assert_int_eq(parse(slashes), ERR_BAD_REQUEST);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("uri", targets_are_split_before_they_are_decoded, each_invalid_target_has_its_error,
          every_escape_is_the_byte_it_names, the_numbers_of_segments_and_parameters_have_exact_limits)

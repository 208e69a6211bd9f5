/* The framing of requests: valid heads and bodies end where they should, and everything else is rejected. */
#include "server/http/framing.h"

#include <stdio.h>
#include <string.h>

#include "tests/core/unit.h"

#define HOST "Host: a\r\n"

/* The verdict on a whole head. */
static struct framing_verdict verdict_on(const char *head, size_t len, struct framing *f)
{
    size_t end;
    *f = (struct framing){ 0 };
    struct framing_verdict v = framing_find_end(head, len, &end);
    if (v.err != OK)
        return v;
    ck_assert_uint_eq(end, len);
    return framing_check_head(f, head, len);
}

START_TEST(valid_heads_tell_how_their_body_ends)
{
    static const struct {
        const char *head;
        enum framing_state state;
        uint64_t left;
    } cases[] = {
        { "GET / HTTP/1.1\r\n" HOST "\r\n", FRAMING_HEAD, 0 },
        { "GET /a?b=c%20d HTTP/1.0\r\n\r\n", FRAMING_HEAD, 0 },
        { "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", FRAMING_HEAD, 0 },
        { "POST / HTTP/1.1\r\nhost:a\r\ncontent-LENGTH:\t12 \r\n\r\n", FRAMING_BODY, 12 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", FRAMING_HEAD, 0 },
        { "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", FRAMING_CHUNK_SIZE, 0 },
        { "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "X-Note: caf\xc3\xa9\r\nEmpty:\r\n\r\n", FRAMING_HEAD, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct framing f;
        struct framing_verdict v = verdict_on(cases[i].head, strlen(cases[i].head), &f);
        ck_assert_msg(v.err == OK, "%s: %s", cases[i].head, v.why);
        ck_assert_int_eq(f.state, cases[i].state);
        ck_assert_uint_eq(f.left, cases[i].left);
    }
}
END_TEST

START_TEST(ambiguous_heads_are_rejected)
{
#define CASE(text) { text, sizeof text - 1 }
    static const struct {
        const char *head;
        size_t len;
    } cases[] = {
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n 5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST " Content-Length: 5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"),
        CASE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        CASE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST HOST "\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "Authorization: a\r\nAuthorization: b\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "X-API-Key: a\r\nx-api-key: b\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "a\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "a\0b: c\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "a: b\0c\r\n\r\n"),
        CASE("GET / HTTP/1.1\r\n" HOST "a: b\rc\r\n\r\n"),
        CASE("GET /a b HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET /a\tb HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET /a\0b HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET /a\rb HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET  / HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET / HTTP/1.1 \r\n" HOST "\r\n"),
        CASE("GET / HTTP/1.2\r\n" HOST "\r\n"),
        CASE("PRI * HTTP/2.0\r\n\r\n"),
        CASE("GET /\r\n\r\n"),
        CASE(" GET / HTTP/1.1\r\n" HOST "\r\n"),
        CASE("G(T / HTTP/1.1\r\n" HOST "\r\n"),
        CASE("GET / HTTP/1.1\n" HOST "\r\n"),
        CASE("GET / HTTP/1.1\r\nHost: a\n\r\n"),
        CASE("GET / HTTP/1.1\r\nHost: a\r\n\n"),
        CASE("\n"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct framing f;
        struct framing_verdict v = verdict_on(cases[i].head, cases[i].len, &f);
        ck_assert_msg(v.err == ERR_BAD_REQUEST && v.why, "accepted: %s", cases[i].head);
    }
}
END_TEST

/* `count` times a text, between two others. */
static void repeat(char *out, const char *before, const char *text, int count, const char *after)
{
    char *at = stpcpy(out, before);
    for (int i = 0; i < count; i++)
        at = stpcpy(at, text);
    stpcpy(at, after);
}

/* The error of a head whose target, or whose header, is `len` times `fill` with `byte` at `at`. */
static enum err error_with(bool in_target, char fill, size_t len, size_t at, int byte)
{
    char head[64];
    char *start = stpcpy(head, in_target ? "GET " : "GET / HTTP/1.0\r\na:");
    memset(start, fill, len);
    start[at] = (char)byte;
    char *end = stpcpy(start + len, in_target ? " HTTP/1.0\r\n\r\n" : "\r\n\r\n");
    return verdict_on(head, (size_t)(end - head), &(struct framing){ 0 }).err;
}

START_TEST(control_characters_are_rejected_wherever_they_are)
{
    static const char fills[] = { 'a', '!', '~', '\x80', '\xff' };
    for (size_t i = 0; i < sizeof fills; i++)
        for (size_t len = 1; len <= 20; len++)
            for (size_t at = 0; at < len; at++)
                for (int byte = 0; byte < 256; byte++) {
                    const bool control = byte < ' ' || byte == 0x7f;
                    ck_assert_msg(
                        (error_with(true, fills[i], len, at, byte) == OK) == (!control && byte != ' ') &&
                            (error_with(false, fills[i], len, at, byte) == OK) == (!control || byte == '\t'),
                        "byte %d at %zu of %zu", byte, at, len);
                }
}
END_TEST

START_TEST(headers_and_parameters_are_counted)
{
    static char head[8192];
    struct framing f;
    repeat(head, "GET / HTTP/1.1\r\n", "a: b\r\n", 63, HOST "\r\n");
    ck_assert_int_eq(verdict_on(head, strlen(head), &f).err, OK);
    repeat(head, "GET / HTTP/1.1\r\n", "a: b\r\n", 64, HOST "\r\n");
    ck_assert_int_eq(verdict_on(head, strlen(head), &f).err, ERR_HEADER_TOO_LARGE);
    repeat(head, "GET /?a", "&a=b", 31, " HTTP/1.0\r\n\r\n");
    ck_assert_int_eq(verdict_on(head, strlen(head), &f).err, OK);
    repeat(head, "GET /?a", "&a=b", 32, " HTTP/1.0\r\n\r\n");
    ck_assert_int_eq(verdict_on(head, strlen(head), &f).err, ERR_BAD_REQUEST);
}
END_TEST

START_TEST(a_head_may_arrive_in_pieces)
{
    static const char head[] = "GET / HTTP/1.1\r\n" HOST "\r\n";
    size_t end;
    for (size_t len = 0; len < sizeof head - 1; len++) {
        ck_assert_int_eq(framing_find_end(head, len, &end).err, OK);
        ck_assert_uint_eq(end, 0);
    }
    ck_assert_int_eq(framing_find_end(head, sizeof head - 1, &end).err, OK);
    ck_assert_uint_eq(end, sizeof head - 1);
}
END_TEST

static char remains[8192]; /* of the body that was taken last */

/* Takes the body in pieces of `step` bytes. Returns where the next head starts, or -1 if it is rejected. */
static long take(enum framing_state state, uint64_t left, const char *body, size_t step)
{
    struct framing f = { .state = state, .left = left };
    const size_t len = strlen(body);
    char bytes[8192];
    remains[0] = '\0';
    for (size_t at = 0, taken, kept; at < len; at += taken) {
        const size_t n = len - at < step ? len - at : step;
        memcpy(bytes, body + at, n);
        if (framing_take_body(&f, bytes, n, &taken, &kept).err != OK)
            return -1;
        strncat(remains, bytes, kept);
        if (f.state == FRAMING_HEAD)
            return (long)(at + taken);
        ck_assert_uint_eq(taken, n);
    }
    return 0;
}

START_TEST(the_extensions_of_chunks_are_removed)
{
    for (size_t step = 1; step < 40; step++) {
        take(FRAMING_CHUNK_SIZE, 0, "5;a=b\r\n12;45\r\n1;\r\n;\r\n0;c\r\nA: b;c\r\n\r\n", step);
        ck_assert_str_eq(remains, "5\r\n12;45\r\n1\r\n;\r\n0\r\nA: b;c\r\n\r\n");
    }
}
END_TEST

START_TEST(what_is_not_http_is_not_waited_for)
{
    static const char *const bad[] = {
        "\x16\x03", "GET /\r\n", "GET / HTTP/2.0\r\nHost", "/ GET", " GET", "{"
    };
    static const char *const open[] = { "",  "G", "GET", "GET / HTTP/", "GET / HTTP/1.1", "GET / HTTP/1.1\r",
                                        "\r" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(framing_check_start(bad[i], strlen(bad[i])).err == ERR_BAD_REQUEST, "%s", bad[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        ck_assert_msg(framing_check_start(open[i], strlen(open[i])).err == OK, "%s", open[i]);
}
END_TEST

START_TEST(a_head_is_tidied)
{
    static const char *const heads[][2] = {
        { "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n" },
        { "GET / HTTP/1.1\r\nA: b \t\r\nC:d\r\nE: \r\nF:\r\n\r\n",
          "GET / HTTP/1.1\r\nA:   b\r\nC:d\r\nE: \r\nF:\r\n\r\n" },
        { "GET /Cookie: HTTP/1.1\r\ncooKIE: a=b\r\nCookies: c\r\nX: Cookie: d\r\n\r\n",
          "GET /Cookie: HTTP/1.1\r\nXooKIE: a=b\r\nCookies: c\r\nX: Cookie: d\r\n\r\n" },
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char head[256];
        strcpy(head, heads[i][0]);
        framing_tidy_head(head, strlen(head));
        ck_assert_str_eq(head, heads[i][1]);
    }
}
END_TEST

START_TEST(a_body_ends_where_its_framing_says)
{
    static char line[1024];
    for (size_t step = 1; step < 40; step++) {
        ck_assert_int_eq(take(FRAMING_BODY, 5, "12345GET", step), 5);
        ck_assert_int_eq(take(FRAMING_BODY, 9, "12345", step), 0);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\n\r\nGET", step), 5);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "5\r\n12345\r\n0\r\n\r\nGET", step), 15);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "A;x=\"1\"\r\n0123456789\r\n000\r\n\r\nGET", step), 28);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nA: b\r\nC: d\r\n\r\nGET", step), 17);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "5\r\n123456\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "5\n12345\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "5\r12345\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, ";a\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0x5\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, " 5\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "10000000000000000\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "5\r\n12345\n0\r\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nA: b\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nA b: c\r\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nA: b\r\n c\r\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nnothing\r\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\n: b\r\n\r\n", step), -1);
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, "0\r\nA: \x01\r\n\r\n", step), -1);
        repeat(line, "0\r\n", "a:b\r\n", 4, "\r\n");
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, line, step), 25);
        repeat(line, "0\r\n", "a:b\r\n", 5, "\r\n");
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, line, step), -1);
        repeat(line, "5;", "x", 300, "\r\n12345\r\n");
        ck_assert_int_eq(take(FRAMING_CHUNK_SIZE, 0, line, step), -1);
    }
}
END_TEST

UNIT_MAIN("framing", valid_heads_tell_how_their_body_ends, ambiguous_heads_are_rejected,
          control_characters_are_rejected_wherever_they_are, headers_and_parameters_are_counted,
          a_head_may_arrive_in_pieces, what_is_not_http_is_not_waited_for, a_head_is_tidied,
          the_extensions_of_chunks_are_removed, a_body_ends_where_its_framing_says)

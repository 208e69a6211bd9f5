/* The log: the format of its lines, and that it never blocks on its reader. */
#include "server/log.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "server/log_line.h"
#include "tests/core/unit.h"
#include "tests/server/stderr.h"

enum { STAMP_BYTES = 24 }; /* 2026-11-16T10:00:00.123Z */

static char bytes[4096];
static struct log_line line;

static void open_line(bool json)
{
    log_line_open(&line, bytes, sizeof bytes, json, "info", "tried");
}

/* The line so far, without its end. */
static const char *closed(void)
{
    size_t len = log_line_close(&line, bytes);
    ck_assert_uint_le(len, sizeof bytes);
    ck_assert_int_eq(bytes[len - 1], '\n');
    bytes[len - 1] = 0;
    return bytes;
}

static const char *behind_stamp(const char *text)
{
    ck_assert_uint_ge(strlen(text), STAMP_BYTES);
    ck_assert_int_eq(text[10], 'T');
    ck_assert_int_eq(text[19], '.');
    ck_assert_int_eq(text[23], 'Z');
    return text + STAMP_BYTES;
}

START_TEST(text_is_quoted_only_where_necessary)
{
    static const char *const cases[][2] = {
        { "/v1/lessons/{id}", "/v1/lessons/{id}" },
        { "two words", "\"two words\"" },
        { "", "\"\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "line\nline", "\"line\\nline\"" },
        { "\x1b[31m\x7f", "\"\\u001b[31m\\u007f\"" },
        { "caf\xc3\xa9", "\"caf\xc3\xa9\"" },
        { "bad\xff", "\"bad\xef\xbf\xbd\"" },
        { "csi\xc2\x9b", "\"csi\xef\xbf\xbd\xef\xbf\xbd\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        open_line(false);
        log_line_text(&line, "value", cases[i][0]);
        log_line_number(&line, "n", -7);
        snprintf(expected, sizeof expected, " info tried value=%s n=-7", cases[i][1]);
        ck_assert_str_eq(behind_stamp(closed()), expected);
    }
}
END_TEST

START_TEST(json_holds_the_same_fields)
{
    open_line(true);
    log_line_text(&line, "route", "a \"b\"\t\xff");
    log_line_text(&line, "owner", NULL);
    log_line_number(&line, "status", 200);
    const char *text = closed();
    ck_assert_int_eq(strncmp(text, "{\"ts\":\"", 7), 0);
    ck_assert_str_eq(behind_stamp(text + 7), "\",\"level\":\"info\",\"event\":\"tried\",\"route\":\"a "
                                             "\\\"b\\\"\\t\xef\xbf\xbd\",\"status\":200}");
}
END_TEST

START_TEST(a_detail_of_names_and_values_becomes_fields)
{
    static const char *const cases[][2] = {
        { "lane=read attempt=3", ",\"lane\":\"read\",\"attempt\":3" },
        { "reason=\"role \"x\" is unknown\" n=1", ",\"reason\":\"role \\\"x\\\" is unknown\",\"n\":1" },
        { "n=007 empty= url=http://[::1]:80", ",\"n\":\"007\",\"empty\":\"\",\"url\":\"http://[::1]:80\"" },
        { "3 requests did not finish", ",\"detail\":\"3 requests did not finish\"" },
        { "a=1 and more", ",\"detail\":\"a=1 and more\"" },
        { "a=\"open", ",\"detail\":\"a=\\\"open\"" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        open_line(true);
        log_line_detail(&line, cases[i][0]);
        snprintf(expected, sizeof expected, "\",\"level\":\"info\",\"event\":\"tried\"%s}", cases[i][1]);
        ck_assert_str_eq(behind_stamp(closed() + 7), expected);
    }
}
END_TEST

START_TEST(quotes_inside_a_quoted_value_of_a_detail_are_escaped_in_text)
{
    static const char *const cases[][2] = {
        { "reason=\"role \"x\" is unknown\" n=1", " reason=\"role \\\"x\\\" is unknown\" n=1" },
        { "reason=\"gone\" n=007", " reason=\"gone\" n=007" },
        { "path=\"C:\\x\"", " path=\"C:\\\\x\"" },
        { "all \"requests\" ended", " all \"requests\" ended" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        open_line(false);
        log_line_detail(&line, cases[i][0]);
        snprintf(expected, sizeof expected, " info tried%s", cases[i][1]);
        ck_assert_str_eq(behind_stamp(closed()), expected);
    }
}
END_TEST

START_TEST(a_line_that_is_too_long_is_truncated_and_stays_well_formed)
{
    static char text[8192];
    for (int json = 0; json < 2; json++) {
        memset(text, '\x01', sizeof text - 1); /* each becomes six bytes */
        open_line(json);
        for (int i = 0; i < 20; i++)
            log_line_text(&line, "field", text);
        log_line_detail(&line, text);
        const char *cut = closed();
        ck_assert_int_eq(cut[strlen(cut) - 1], json ? '}' : '"');

        for (size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = "\xe2\x82\xac"[i % 3];
        open_line(json);
        log_line_detail(&line, text);
        ck_assert_ptr_null(strstr(closed(), "\xef\xbf\xbd")); /* no character was cut in two */
    }
}
END_TEST

START_TEST(request_lines_are_buffered_and_events_are_written_immediately)
{
    const struct log_request r = { .method = "GET",
                                   .route = "/v1/lessons/{id}",
                                   .owner = "local",
                                   .request_id = "r 1",
                                   .status = 200,
                                   .us = 311,
                                   .bytes_out = 812 };
    stderr_begin();
    ck_assert(log_setup("info", "text"));
    log_request(&r);
    ck_assert_str_eq(stderr_end(), "");
    stderr_begin();
    log_event(LOG_DEBUG, "unseen", "x=1");
    log_event(LOG_INFO, "seen", "x=1");
    char *text = strdup(stderr_end()), *rest = text;
    ck_assert_str_eq(behind_stamp(strsep(&rest, "\n")),
                     " info request method=GET route=/v1/lessons/{id} status=200 us=311 "
                     "in=0 out=812 owner=local request_id=\"r 1\"");
    ck_assert_str_eq(behind_stamp(strsep(&rest, "\n")), " info seen x=1");
    ck_assert_str_eq(rest, "");
    free(text);
}
END_TEST

START_TEST(lines_below_the_level_are_not_written)
{
    stderr_begin();
    ck_assert(!log_setup("loud", "text"));
    ck_assert(!log_setup("info", "xml"));
    ck_assert(log_setup("error", "text"));
    ck_assert(!log_on(LOG_WARN));
    ck_assert(log_on(LOG_ERROR));
    log_event(LOG_WARN, "unseen", "%s", "");
    log_request(&(struct log_request){ .method = "GET", .status = 200 });
    log_flush();
    ck_assert_str_eq(stderr_end(), "");
}
END_TEST

START_TEST(a_failure_is_one_line_whatever_it_contains)
{
    stderr_begin();
    ck_assert(!log_failure("it failed: %s", "first\nsecond\r\n\tthird\n\n"));
    ck_assert_str_eq(stderr_end(), "daybookd: it failed: first second   third\n");
}
END_TEST

START_TEST(a_stalled_reader_does_not_block_and_learns_how_many_lines_it_missed)
{
    int ends[2];
    static char seen[4 << 20];
    ck_assert_int_eq(pipe(ends), 0);
    int before = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    ck_assert(log_setup("info", "text"));
    int written = 0;
    for (; written < 20000; written++) /* more than any pipe holds */
        log_event(LOG_INFO, "flood",
                  "n=%d filler=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", written);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ssize_t n = read(ends[0], seen, sizeof seen - 1);
    ck_assert_int_gt(n, 0);
    seen[n] = 0;
    ck_assert_int_eq(seen[n - 1], '\n'); /* whole lines only */
    long long lines = 0;
    for (char *p = seen; (p = strchr(p, '\n')); p++)
        lines++;
    log_event(LOG_INFO, "after", "x=1");
    n = read(ends[0], seen, sizeof seen - 1);
    seen[n > 0 ? n : 0] = 0;
    dup2(before, STDERR_FILENO);
    char expected[64];
    snprintf(expected, sizeof expected, " warn log_dropped lines=%lld\n", written - lines);
    ck_assert_msg(strstr(seen, expected) != NULL, "not there: %s in: %s", expected, seen);
}
END_TEST

START_TEST(a_closed_reader_does_no_harm)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    int before = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    ck_assert(log_setup("info", "text"));
    close(ends[0]);
    for (int i = 0; i < 100; i++)
        log_event(LOG_INFO, "unread", "n=%d", i);
    dup2(before, STDERR_FILENO);
}
END_TEST

UNIT_MAIN("log", text_is_quoted_only_where_necessary, json_holds_the_same_fields,
          a_detail_of_names_and_values_becomes_fields,
          quotes_inside_a_quoted_value_of_a_detail_are_escaped_in_text,
          a_line_that_is_too_long_is_truncated_and_stays_well_formed,
          request_lines_are_buffered_and_events_are_written_immediately,
          lines_below_the_level_are_not_written, a_failure_is_one_line_whatever_it_contains,
          a_stalled_reader_does_not_block_and_learns_how_many_lines_it_missed, a_closed_reader_does_no_harm)

/* Retries and their delays; when the circuit breaker opens and closes; addresses. */
#include "server/remote/retry.h"

#include "server/remote/breaker.h"
#include "server/remote/url.h"
#include "tests/core/unit.h"

static const struct retry_policy policy = { .tries = 5, .first_ms = 100, .most_ms = 1000 };

static struct remote_answer answered(int status, int64_t retry_after_ms)
{
    return (struct remote_answer){ .status = status, .retry_after_ms = retry_after_ms };
}

static int64_t pause_ms(struct remote_answer a, int tries, int64_t left_ms, uint32_t random)
{
    return retry_pause_ms(&policy, &a, tries, left_ms, random);
}

START_TEST(only_transient_faults_are_retried)
{
    static const struct {
        enum remote_outcome outcome;
        int status;
        bool again;
    } cases[] = {
        { REMOTE_ANSWERED, 200, false }, { REMOTE_ANSWERED, 301, false }, { REMOTE_ANSWERED, 400, false },
        { REMOTE_ANSWERED, 401, false }, { REMOTE_ANSWERED, 403, false }, { REMOTE_ANSWERED, 404, false },
        { REMOTE_ANSWERED, 408, false }, { REMOTE_ANSWERED, 413, false }, { REMOTE_ANSWERED, 422, false },
        { REMOTE_ANSWERED, 429, true },  { REMOTE_ANSWERED, 500, true },  { REMOTE_ANSWERED, 503, true },
        { REMOTE_ANSWERED, 529, true },  { REMOTE_UNREACHABLE, 0, true }, { REMOTE_LOST, 0, true },
        { REMOTE_LOST, 200, true },      { REMOTE_TIMEOUT, 0, false },    { REMOTE_TOO_LARGE, 200, false },
        { REMOTE_BROKEN, 0, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct remote_answer a = { cases[i].outcome, .status = cases[i].status, .retry_after_ms = -1 };
        ck_assert_msg((retry_pause_ms(&policy, &a, 1, 60000, 0) >= 0) == cases[i].again, "case %zu", i);
    }
}
END_TEST

START_TEST(pauses_double_up_to_the_maximum_and_half_of_each_is_random)
{
    static const int64_t whole[] = { 100, 200, 400, 800, -1, -1 };
    for (int tries = 1; tries <= 6; tries++) {
        int64_t least = pause_ms(answered(500, -1), tries, 60000, 0);
        int64_t most = pause_ms(answered(500, -1), tries, 60000, UINT32_MAX);
        if (whole[tries - 1] < 0) {
            ck_assert_int_eq(least, -1);
            continue;
        }
        ck_assert_int_eq(least, whole[tries - 1] / 2);
        ck_assert_int_eq(most, whole[tries - 1] - 1);
    }
    static const struct retry_policy many = { .tries = 100, .first_ms = 100, .most_ms = 1000 };
    struct remote_answer a = answered(500, -1);
    ck_assert_int_eq(retry_pause_ms(&many, &a, 90, 60000, 0), 500);
}
END_TEST

START_TEST(the_retry_after_of_the_server_is_respected)
{
    ck_assert_int_eq(pause_ms(answered(429, 3000), 1, 60000, 0), 3000);
    ck_assert_int_ge(pause_ms(answered(429, 3000), 1, 60000, UINT32_MAX), 3000);
    ck_assert_int_eq(pause_ms(answered(503, 10), 1, 60000, 0), 50); /* never shorter than our own pause */
    struct remote_answer lost = { REMOTE_LOST, .retry_after_ms = 3000 };
    ck_assert_int_eq(retry_pause_ms(&policy, &lost, 1, 60000, 0), 50);
}
END_TEST

START_TEST(no_pause_exceeds_the_remaining_time)
{
    ck_assert_int_eq(pause_ms(answered(429, 60000), 1, 60000, 0), -1);
    ck_assert_int_eq(pause_ms(answered(500, -1), 1, 100, 0), 50);
    ck_assert_int_eq(pause_ms(answered(500, -1), 1, 99, 0), -1);
    ck_assert_int_eq(pause_ms(answered(500, -1), 1, 0, 0), -1);
    ck_assert_int_eq(pause_ms(answered(500, -1), 1, -5, 0), -1);
}
END_TEST

/* ---- the circuit ---- */

enum { SECOND = 1000000 };

START_TEST(three_consecutive_failures_open_it_and_a_success_resets_the_count)
{
    struct breaker b = { 0 };
    for (int i = 0; i < 10; i++) {
        ck_assert(breaker_enter(&b, 0) && !breaker_failure(&b, 0));
        ck_assert(breaker_enter(&b, 0) && !breaker_failure(&b, 0));
        ck_assert(breaker_enter(&b, 0) && !breaker_success(&b));
    }
    for (int i = 0; i < 3; i++) {
        ck_assert(breaker_enter(&b, 0));
        ck_assert_int_eq(breaker_failure(&b, 0), i == 2);
    }
    ck_assert(!breaker_allows(&b, 0));
    ck_assert(!breaker_enter(&b, SECOND - 1));
}
END_TEST

static struct breaker open_at(int64_t now_us)
{
    struct breaker b = { 0 };
    while (!breaker_failure(&b, now_us))
        ;
    return b;
}

START_TEST(after_its_pause_one_probe_may_close_it)
{
    struct breaker b = open_at(0);
    ck_assert(breaker_enter(&b, SECOND));
    ck_assert(!breaker_enter(&b, SECOND)); /* the others wait for the result of the probe */
    ck_assert(breaker_success(&b));
    ck_assert(breaker_enter(&b, SECOND));
    ck_assert(!breaker_success(&b));
}
END_TEST

START_TEST(each_failed_probe_doubles_the_pause_up_to_the_maximum)
{
    struct breaker b = open_at(0);
    int64_t now = 0;
    static const int seconds[] = { 1, 2, 4, 8, 16, 30, 30 };
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        now += (int64_t)seconds[i] * SECOND;
        ck_assert(!breaker_enter(&b, now - 1));
        ck_assert(breaker_enter(&b, now));
        ck_assert(breaker_failure(&b, now));
    }
    ck_assert(breaker_enter(&b, now + 30 * SECOND) && breaker_success(&b));
    b = open_at(now); /* and it starts over */
    ck_assert(breaker_enter(&b, now + SECOND));
}
END_TEST

START_TEST(after_a_cancelled_probe_the_next_call_may_probe)
{
    struct breaker b = open_at(0);
    ck_assert(breaker_enter(&b, SECOND));
    breaker_leave(&b);
    ck_assert(breaker_enter(&b, SECOND));
    struct breaker closed = { 0 };
    breaker_leave(&closed);
    ck_assert(breaker_enter(&closed, 0));
}
END_TEST

START_TEST(requests_sent_before_it_opened_do_not_extend_the_pause)
{
    struct breaker b = open_at(0);
    for (int i = 0; i < 100; i++)
        ck_assert(!breaker_failure(&b, 500000));
    ck_assert(breaker_enter(&b, SECOND));
}
END_TEST

/* ---- addresses ---- */

START_TEST(an_address_may_be_given_in_three_ways)
{
    static const struct {
        const char *given, *tail, *url;
    } cases[] = {
        { "https://api.anthropic.com", "messages", "https://api.anthropic.com/v1/messages" },
        { "https://api.anthropic.com/", "messages", "https://api.anthropic.com/v1/messages" },
        { "https://api.anthropic.com/v1", "messages", "https://api.anthropic.com/v1/messages" },
        { "https://api.anthropic.com/v1/messages", "messages", "https://api.anthropic.com/v1/messages" },
        { "https://api.anthropic.com/v1/messages/", "messages", "https://api.anthropic.com/v1/messages" },
        { "http://localhost:11434/v1/", "chat/completions", "http://localhost:11434/v1/chat/completions" },
        { "http://h/proxy", "embeddings", "http://h/proxy/v1/embeddings" },
        { "http://h/api/v3", "embeddings", "http://h/api/v3/embeddings" },
        { "https://h/openai/chat/completions", "chat/completions", "https://h/openai/chat/completions" },
        { "https://h/x?api-version=2", "chat/completions", "https://h/x?api-version=2" },
    };
    struct arena arena = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(url_of(&arena, cases[i].given, cases[i].tail), cases[i].url);
    ck_assert_str_eq(url_host(&arena, "https://h.example:8443/v1?key=secret"), "h.example:8443");
    ck_assert_str_eq(url_host(&arena, "http://[::1]?key=secret"), "[::1]");
    arena_release(&arena);
}
END_TEST

START_TEST(addresses_are_http_and_hold_no_secret)
{
    static const char *const good[] = { "http://h",        "https://h",
                                        "HTTPS://h:1/x",   "http://127.0.0.1:8080/v1",
                                        "http://[::1]:80", "https://h/x?y=z" };
    static const char *const bad[] = { "",
                                       "h",
                                       "ftp://h",
                                       "file:///etc/passwd",
                                       "http://",
                                       "http:///x",
                                       "http://:80",
                                       "https://u:p@h",
                                       "http://h/ x",
                                       "http://h\n",
                                       "http://h/#x",
                                       "//h",
                                       "http://h\\x",
                                       "http://h/\xc3\xa9",
                                       "https:h" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(url_is_valid(good[i]), "refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!url_is_valid(bad[i]), "taken: %s", bad[i]);
}
END_TEST

UNIT_MAIN("remote_retry", only_transient_faults_are_retried,
          pauses_double_up_to_the_maximum_and_half_of_each_is_random,
          the_retry_after_of_the_server_is_respected, no_pause_exceeds_the_remaining_time,
          three_consecutive_failures_open_it_and_a_success_resets_the_count,
          after_its_pause_one_probe_may_close_it, each_failed_probe_doubles_the_pause_up_to_the_maximum,
          after_a_cancelled_probe_the_next_call_may_probe,
          requests_sent_before_it_opened_do_not_extend_the_pause, an_address_may_be_given_in_three_ways,
          addresses_are_http_and_hold_no_secret)

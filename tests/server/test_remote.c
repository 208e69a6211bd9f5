/* Requests to other servers: the outcome of each fault, which ones are retried, and that hundreds of pending
 * requests do not block the loop. */
#include "server/remote/remote.h"

#include <netdb.h>
#include <semaphore.h>
#include <signal.h>

#include "core/base/vector.h"
#include "server/config.h"
#include "server/coro.h"
#include "server/dispatch/route.h"
#include "server/embedder.h"
#include "server/metrics.h"
#include "server/remote/remote_embedder.h"
#include "server/remote/llm.h"
#include "server/remote/remote_check.h"
#include "server/remote/retry.h"
#include "tests/server/stderr.h"
#include "tests/server/stub.h"

#define END_OF_HEAD "\r\n\r\n"
#define ANTHROPIC_OK                                                                                        \
    "200 OK" END_OF_HEAD                                                                                    \
    "{\"model\":\"m-1\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}],\"stop_reason\":\"end_turn\"," \
    "\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}"
#define TWO_VECTORS      \
    "200 OK" END_OF_HEAD \
    "{\"data\":[{\"index\":1,\"embedding\":[0,-2]},{\"index\":0,\"embedding\":[3.0,4e0]}]}"

static struct loop loop;
static struct config config;
static struct stub stub;

/* ---- a loop with the parts of the service needed here ---- */

static void setting(const char *name, const char *value)
{
    setenv(name, value, 1);
}

/* Opens it with a stub server that follows this script. */
#define SET_UP(...) set_up(LIST(__VA_ARGS__), COUNT(LIST(__VA_ARGS__)))
#define LIST(...)   ((const char *const[]){ __VA_ARGS__ })
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static void set_up(const char *const *script, int lines)
{
    signal(SIGPIPE, SIG_IGN);
    stub_start(&stub, script, lines);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", stub.port);
    setting("DAYBOOK_MODEL_API", "anthropic");
    setting("DAYBOOK_MODEL_URL", url);
    setting("DAYBOOK_MODEL_KEY", "sk-secret-1");
    setting("DAYBOOK_MODEL_NAME", "m-1");
    setting("DAYBOOK_MODEL_PRICE_INPUT", "3");
    setting("DAYBOOK_MODEL_PRICE_OUTPUT", "15");
    setting("DAYBOOK_EMBEDDING_URL", url);
    setting("DAYBOOK_EMBEDDING_KEY", "sk-secret-2");
    setting("DAYBOOK_EMBEDDING_MODEL", "e-1");
    setting("DAYBOOK_EMBEDDING_DIMENSION", "2");
    int argc = 1;
    char *argv[] = { "daybookd", NULL };
    ck_assert(config_read(&config, &argc, argv));
    ck_assert(remote_check(&config));
    ck_assert(remote_setup());
    ck_assert(loop_open(&loop));
    route_init();
    loop.config = &config;
    loop.metrics = metrics_open(&loop);
    loop.llm = llm_open(&loop);
    loop.embedder = remote_embedder_open(&loop);
    loop.remote = remote_open(&loop);
}

static void tear_down(void)
{
    remote_close(loop.remote);
    llm_close(loop.llm);
    remote_embedder_close(loop.embedder);
    loop_close(&loop);
    metrics_close();
    coro_release_spares();
    arena_thread_end();
    remote_teardown();
    stub_stop(&stub);
}

/* ---- tasks ---- */

struct asker {
    struct task task;
    struct arena arena;
    struct problem problem;
    void (*run)(struct asker *a);
    bool done;
    enum err err;
    int tries;
    struct remote_answer answer;
    struct llm_answer said;
};

static void run_asker(void *arg)
{
    struct asker *a = arg;
    a->run(a);
    a->done = true;
}

static void start(struct asker *a, void (*run)(struct asker *a))
{
    *a = (struct asker){ .run = run };
    a->problem.arena = &a->arena;
    a->task = (struct task){ .loop = &loop, .arena = &a->arena, .problem = &a->problem, .id = "r-1" };
    coro_start(run_asker, a);
}

static void finish(struct asker *a)
{
    while (!a->done)
        loop_turn(&loop, 100000);
}

static void end(struct asker *a)
{
    ck_assert_ptr_null(a->task.wait);
    arena_release(&a->arena);
}

/* What the daemon does when the time limit of a task has passed. */
static void time_up(struct asker *a)
{
    ck_assert(task_cancel(&a->task, ERR_REQUEST_TIMEOUT, false));
}

static int64_t limit_ms = 20000;

static void post(struct asker *a)
{
    static const char *const headers[] = { "X-One: 1", NULL };
    static const struct retry_policy policy = { .tries = 3, .first_ms = 1, .most_ms = 2 };
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/path", stub.port);
    const struct remote_request request = { url, headers, "{\"a\":1}", 7, limit_ms };
    a->err = retry_post(&a->task, &request, &policy, &a->answer, &a->tries);
}

static const char *model; /* NULL: that of the configuration */

static void ask(struct asker *a)
{
    const struct llm_question q = {
        .system = "Be brief.", .user = "Well?", .model = model, .max_tokens = 100
    };
    a->err = llm_ask(&a->task, &q, &a->said);
}

/* ---- one request ---- */

START_TEST(a_request_is_sent_as_json_and_its_response_is_returned)
{
    SET_UP("201 Created" END_OF_HEAD "{}");
    struct asker a;
    start(&a, post);
    ck_assert(!a.done);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(a.answer.outcome, REMOTE_ANSWERED);
    ck_assert_int_eq(a.answer.status, 201);
    ck_assert_str_eq(a.answer.body, "{}");
    ck_assert_int_eq(a.tries, 1);
    ck_assert_ptr_nonnull(strstr(stub.seen, "POST /path HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\nContent-Type: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\nX-One: 1\r\n"));
    ck_assert_ptr_null(strcasestr(stub.seen, "expect:"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\n\r\n{\"a\":1}"));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(a_connection_is_reused)
{
    SET_UP("200 OK" END_OF_HEAD "{}");
    for (int i = 0; i < 5; i++) {
        struct asker a;
        start(&a, post);
        finish(&a);
        ck_assert_int_eq(a.answer.status, 200);
        end(&a);
    }
    ck_assert_int_eq(stub.requests, 5);
    ck_assert_int_eq(stub.connections, 1);
    tear_down();
}
END_TEST

/* Each fault: the number of attempts, and the final outcome. */
START_TEST(every_fault_has_its_outcome_and_only_transient_ones_are_retried)
{
    static const char big[] = "!HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\nx";
    static const struct {
        const char *script[4];
        enum remote_outcome outcome;
        int status, tries;
    } faults[] = {
        { { "429 Too Many" END_OF_HEAD, "200 OK" END_OF_HEAD }, REMOTE_ANSWERED, 200, 2 },
        { { "500 Oops" END_OF_HEAD, "529 Overloaded" END_OF_HEAD, "200 OK" END_OF_HEAD },
          REMOTE_ANSWERED,
          200,
          3 },
        { { "503 Oops" END_OF_HEAD }, REMOTE_ANSWERED, 503, 3 },
        { { "!" }, REMOTE_LOST, 0, 3 },
        { { "!HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123" }, REMOTE_LOST, 200, 3 },
        { { "!", "200 OK" END_OF_HEAD }, REMOTE_ANSWERED, 200, 2 },
        { { "400 Bad" END_OF_HEAD }, REMOTE_ANSWERED, 400, 1 },
        { { "401 No" END_OF_HEAD }, REMOTE_ANSWERED, 401, 1 },
        { { "404 No" END_OF_HEAD }, REMOTE_ANSWERED, 404, 1 },
        { { "307 There\r\nLocation: http://127.0.0.1:1/" END_OF_HEAD }, REMOTE_ANSWERED, 307, 1 },
        { { "!this is not HTTP\r\n\r\n" }, REMOTE_BROKEN, 0, 1 },
        { { big }, REMOTE_TOO_LARGE, 200, 1 },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int lines = 1;
        while (faults[i].script[lines])
            lines++;
        set_up(faults[i].script, lines);
        struct asker a;
        start(&a, post);
        finish(&a);
        ck_assert_int_eq(a.err, OK);
        ck_assert_msg(a.answer.outcome == faults[i].outcome, "fault %zu: %d, %s", i, a.answer.outcome,
                      a.answer.why);
        ck_assert_int_eq(a.answer.status, faults[i].status);
        ck_assert_msg(a.tries == faults[i].tries, "fault %zu: %d tries", i, a.tries);
        end(&a);
        tear_down();
    }
}
END_TEST

START_TEST(a_refused_connection_is_retried_and_reported)
{
    SET_UP("!");
    stub_stop(&stub);
    struct asker a;
    start(&a, post);
    finish(&a);
    ck_assert_int_eq(a.answer.outcome, REMOTE_UNREACHABLE);
    ck_assert_int_eq(a.tries, 3);
    end(&a);
    stub_start(&stub, stub.script, 1);
    tear_down();
}
END_TEST

START_TEST(an_endless_response_is_refused_once_it_is_too_large)
{
    static char endless[REMOTE_MAX_BYTES + 4096];
    memset(endless, 'x', sizeof endless - 1);
    static const char head[] = "!HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    memcpy(endless, head, sizeof head - 1);
    SET_UP(endless);
    struct asker a;
    start(&a, post);
    finish(&a);
    ck_assert_int_eq(a.answer.outcome, REMOTE_TOO_LARGE);
    ck_assert_int_eq(a.tries, 1);
    end(&a);
    tear_down();
}
END_TEST

START_TEST(a_hanging_request_times_out_and_is_not_retried)
{
    SET_UP(NULL);
    limit_ms = 200;
    struct asker a;
    start(&a, post);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(a.answer.outcome, REMOTE_TIMEOUT);
    ck_assert_int_eq(a.tries, 1);
    end(&a);
    tear_down();
}
END_TEST

/* ---- names ---- */

/* libcurl resolves names in a separate thread; this resolver blocks until the test releases it. */
static atomic_int resolving, resolved;
static sem_t may_resolve;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)node, (void)service, (void)hints, (void)out;
    resolving++;
    sem_wait(&may_resolve);
    resolved++;
    return EAI_AGAIN;
}

static void post_to_name(struct asker *a)
{
    static const struct retry_policy once = { .tries = 1 };
    const struct remote_request request = { "http://slow.test/", NULL, "{}", 2, limit_ms };
    a->err = retry_post(&a->task, &request, &once, &a->answer, &a->tries);
}

START_TEST(a_hanging_name_lookup_blocks_neither_the_loop_nor_the_end_of_its_call)
{
    sem_init(&may_resolve, 0, 0);
    SET_UP(NULL);
    struct asker given_up, late, closed;
    start(&given_up, post_to_name);
    limit_ms = 100;
    start(&late, post_to_name);
    finish(&late); /* the loop keeps running */
    ck_assert_int_eq(late.answer.outcome, REMOTE_UNREACHABLE);
    time_up(&given_up);
    ck_assert_int_eq(given_up.err, ERR_REQUEST_TIMEOUT);
    limit_ms = 20000;
    start(&closed, post_to_name);
    loop_turn(&loop, 0);
    loop_turn(&loop, 10000);
    remote_close(loop.remote);
    loop.remote = NULL;
    ck_assert_int_eq(closed.err, ERR_SHUTTING_DOWN);
    ck_assert_int_eq(resolved, 0);
    ck_assert_int_ge(resolving, 2);
    for (int i = 0; i < 100; i++) /* for lookups that have not started too */
        sem_post(&may_resolve);
    while (resolved < resolving)
        usleep(1000);
    end(&given_up);
    end(&late);
    end(&closed);
    tear_down();
}
END_TEST

/* ---- many of them ---- */

enum { MANY = 200 };
static struct asker many[MANY];

static void start_many(void)
{
    SET_UP(NULL);
    for (int i = 0; i < MANY; i++)
        start(&many[i], i % 2 ? post : ask);
    while (stub.requests < MANY)
        loop_turn(&loop, 10000);
}

static int fired;

static void on_fire(struct timer *t)
{
    (void)t;
    fired++;
}

START_TEST(two_hundred_hanging_calls_cost_the_loop_nothing_and_delay_no_others)
{
    start_many();
    loop_turn(&loop, 0);
    int turns = 0;
    for (int i = 0; i < 20; i++) { /* if they kept the loop busy, it would run more often than requested */
        struct timer t = { .fire = on_fire };
        loop_timer(&loop, &t, 5000);
        for (int before = fired; fired == before; turns++)
            loop_turn(&loop, -1);
    }
    ck_assert_int_eq(fired, 20);
    ck_assert_int_le(turns, 60);
    for (int i = 0; i < MANY; i++) {
        ck_assert(!many[i].done);
        time_up(&many[i]);
        ck_assert(many[i].done);
        ck_assert_int_eq(many[i].err, ERR_REQUEST_TIMEOUT);
        end(&many[i]);
    }
    tear_down();
}
END_TEST

START_TEST(closing_ends_hanging_calls_and_those_waiting_for_a_retry)
{
    start_many();
    struct asker pauses;
    stub.script = (const char *const[]){ "429 Wait\r\nRetry-After: 19" END_OF_HEAD };
    start(&pauses, post);
    while (stub.requests <= MANY)
        loop_turn(&loop, 10000);
    for (int i = 0; i < 10; i++)
        loop_turn(&loop, 10000);
    ck_assert(!pauses.done);
    tear_down();
    ck_assert(pauses.done);
    ck_assert_int_eq(pauses.err, ERR_SHUTTING_DOWN);
    end(&pauses);
    for (int i = 0; i < MANY; i++) {
        ck_assert(many[i].done);
        ck_assert_int_eq(many[i].err, ERR_SHUTTING_DOWN);
        end(&many[i]);
    }
}
END_TEST

START_TEST(a_call_also_times_out_while_it_waits_for_a_retry)
{
    SET_UP("429 Wait\r\nRetry-After: 19" END_OF_HEAD);
    struct asker a;
    start(&a, post);
    while (stub.requests < 1)
        loop_turn(&loop, 10000);
    for (int i = 0; i < 10; i++)
        loop_turn(&loop, 10000);
    ck_assert(!a.done);
    time_up(&a);
    ck_assert(a.done);
    ck_assert_int_eq(a.err, ERR_REQUEST_TIMEOUT);
    end(&a);
    tear_down();
}
END_TEST

/* ---- the model ---- */

START_TEST(a_model_call_returns_its_answer_and_cost)
{
    SET_UP(ANTHROPIC_OK);
    struct asker a;
    start(&a, ask);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    ck_assert_str_eq(a.said.text, "hello");
    ck_assert_str_eq(a.said.model, "m-1");
    ck_assert_int_eq(a.said.tokens_in, 10);
    ck_assert_int_eq(a.said.tokens_out, 2);
    ck_assert_str_eq(a.said.cost_usd, "0.00006");
    ck_assert(!a.said.truncated);
    ck_assert_ptr_nonnull(strstr(stub.seen, "POST /v1/messages HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\nx-api-key: sk-secret-1\r\n"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\nanthropic-version: 2023-06-01\r\n"));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(the_cost_is_unknown_for_a_model_other_than_the_configured_one)
{
    SET_UP(ANTHROPIC_OK);
    model = "m-2";
    struct asker a;
    start(&a, ask);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    ck_assert_ptr_null(a.said.cost_usd);
    ck_assert_ptr_nonnull(strstr(stub.seen, "\"model\":\"m-2\""));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(each_failure_of_a_model_is_reported_without_the_key)
{
    static const struct {
        const char *line;
        enum err err;
        const char *detail;
    } failures[] = {
        { "401 No" END_OF_HEAD
          "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"sk-secret-1 is "
          "not a key\"}}   ",
          ERR_MODEL_FAILED, "it answered 401 authentication_error" },
        { "400 No" END_OF_HEAD "{\"error\":{\"type\":\"sk-secret-1 is bad\"}}", ERR_MODEL_FAILED,
          "it answered 400 error" },
        { "404 No" END_OF_HEAD "nope", ERR_MODEL_FAILED, "it answered 404" },
        { "429 No\r\nRetry-After: 600" END_OF_HEAD, ERR_MODEL_FAILED,
          "it answered 429 and asks to wait 600 s" },
        { "200 OK" END_OF_HEAD "nope", ERR_MODEL_FAILED, "it answered 200 with something else than JSON" },
        { "200 OK" END_OF_HEAD, ERR_MODEL_FAILED, "it answered 200 with something else than JSON" },
        { "200 OK" END_OF_HEAD "{\"content\":[]}", ERR_MODEL_FAILED, "it answered 200 without a text" },
    };
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        SET_UP(failures[i].line);
        struct asker a;
        stderr_begin();
        start(&a, ask);
        finish(&a);
        const char *said = stderr_end();
        ck_assert_int_eq(a.err, failures[i].err);
        ck_assert_str_eq(a.problem.detail, failures[i].detail);
        ck_assert_ptr_nonnull(strstr(said, "model_failed"));
        ck_assert_ptr_nonnull(strstr(said, failures[i].detail));
        ck_assert_ptr_null(strstr(said, "secret"));
        ck_assert_ptr_null(strstr(said, "Well?"));
        end(&a);
        tear_down();
    }
}
END_TEST

START_TEST(a_hanging_model_has_its_own_timeout_error)
{
    setting("DAYBOOK_MODEL_TIMEOUT_MS", "1000");
    setting("DAYBOOK_EMBEDDING_TIMEOUT_MS", "500");
    SET_UP(NULL);
    struct asker a;
    stderr_begin();
    start(&a, ask);
    finish(&a);
    const char *said = stderr_end();
    ck_assert_int_eq(a.err, ERR_MODEL_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(said, "model_timeout"));
    ck_assert_int_eq(stub.requests, 1);
    end(&a);
    tear_down();
}
END_TEST

START_TEST(without_a_model_a_call_is_refused)
{
    SET_UP("!");
    llm_close(loop.llm);
    loop.llm = NULL;
    ck_assert(!llm_configured(&loop));
    struct asker a;
    start(&a, ask);
    ck_assert(a.done);
    ck_assert_int_eq(a.err, ERR_MODEL_NOT_CONFIGURED);
    end(&a);
    tear_down();
}
END_TEST

/* ---- the embedding endpoint ---- */

static float vectors[300];
static size_t text_count = 2;

static void embed(struct asker *a)
{
    static const char *texts[150];
    for (size_t i = 0; i < 150; i++)
        texts[i] = i % 2 ? "second" : "first";
    a->err = embedder_embed(&a->task, texts, text_count, vectors);
}

START_TEST(texts_become_vectors_of_length_one_in_their_own_order)
{
    SET_UP(TWO_VECTORS);
    ck_assert_str_eq(embedder_space(&loop).model, "e-1");
    ck_assert_uint_eq(embedder_space(&loop).dim, 2);
    ck_assert_str_eq(embedder_kind(&loop), "endpoint");
    struct asker a;
    start(&a, embed);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    const float expected[] = { 0.6f, 0.8f, 0, -1 };
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq_tol(vectors[i], expected[i], 1e-6f);
    ck_assert_ptr_nonnull(strstr(stub.seen, "POST /v1/embeddings HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(stub.seen, "\r\nAuthorization: Bearer sk-secret-2\r\n"));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(three_failures_open_the_circuit_until_the_pause_is_over_and_one_success_closes_it)
{
    SET_UP("401 No" END_OF_HEAD, "401 No" END_OF_HEAD, "401 No" END_OF_HEAD, TWO_VECTORS);
    struct asker a;
    stderr_begin();
    for (int i = 0; i < 3; i++) {
        ck_assert(embedder_available(&loop));
        start(&a, embed);
        finish(&a);
        ck_assert_int_eq(a.err, ERR_EMBEDDER_UNAVAILABLE);
        end(&a);
    }
    ck_assert(!embedder_available(&loop));
    start(&a, embed);
    ck_assert(a.done); /* at once */
    ck_assert_int_eq(a.err, ERR_EMBEDDER_UNAVAILABLE);
    end(&a);
    ck_assert_int_eq(stub.requests, 3);
    while (!embedder_available(&loop))
        loop_turn(&loop, 50000);
    start(&a, embed);
    ck_assert(!a.done);
    ck_assert(!embedder_available(&loop)); /* the first call is the probe, the others wait for its result */
    finish(&a);
    const char *said = stderr_end();
    ck_assert_int_eq(a.err, OK);
    ck_assert(embedder_available(&loop));
    end(&a);
    ck_assert_ptr_nonnull(strstr(said, "embedder_failed"));
    ck_assert_ptr_nonnull(strstr(said, "embedder_down"));
    ck_assert_ptr_nonnull(strstr(said, "embedder_back"));
    ck_assert_ptr_null(strstr(said, "secret"));
    tear_down();
}
END_TEST

#define ONE_VECTOR "200 OK" END_OF_HEAD "{\"data\":[{\"index\":0,\"embedding\":[0,5]}]}"

START_TEST(texts_refused_as_a_batch_are_sent_one_by_one)
{
    SET_UP("400 No" END_OF_HEAD, ONE_VECTOR, ONE_VECTOR);
    struct asker a;
    start(&a, embed);
    finish(&a);
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(stub.requests, 3);
    const float expected[] = { 0, 1, 0, 1 };
    ck_assert_mem_eq(vectors, expected, sizeof expected);
    ck_assert(embedder_available(&loop));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(texts_refused_at_any_length_are_a_failure_if_no_other_text_is_accepted)
{
    SET_UP("422 No" END_OF_HEAD);
    stderr_begin();
    struct asker a;
    start(&a, embed);
    finish(&a);
    ck_assert_int_eq(a.err, ERR_EMBEDDER_UNAVAILABLE);
    ck_assert_int_eq(stub.requests, 4); /* the batch, each text, and a probe */
    ck_assert_ptr_nonnull(strstr(stderr_end(), "embedder_refused"));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(refused_texts_get_zeros_if_another_text_is_accepted)
{
    SET_UP("400 No" END_OF_HEAD, "400 No" END_OF_HEAD, "400 No" END_OF_HEAD, ONE_VECTOR);
    vectors[0] = vectors[3] = 1;
    stderr_begin();
    struct asker a;
    start(&a, embed);
    finish(&a);
    stderr_end();
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(stub.requests, 4);
    ck_assert(!embedder_has_vector(vectors, 4));
    ck_assert(embedder_available(&loop));
    end(&a);
    tear_down();
}
END_TEST

START_TEST(a_text_refused_at_any_length_gets_zeros_and_does_not_affect_the_other)
{
    SET_UP("400 No" END_OF_HEAD, ONE_VECTOR, "400 No" END_OF_HEAD);
    stderr_begin();
    struct asker a;
    start(&a, embed);
    finish(&a);
    stderr_end();
    ck_assert_int_eq(a.err, OK);
    ck_assert_int_eq(stub.requests, 3);
    const float expected[] = { 0, 1, 0, 0 };
    ck_assert_mem_eq(vectors, expected, sizeof expected);
    ck_assert(embedder_has_vector(vectors, 2));
    ck_assert(!embedder_has_vector(vectors + 2, 2));
    ck_assert(embedder_available(&loop));
    end(&a);
    tear_down();
}
END_TEST

/* 150 texts: two batches of 64 and one of 22; the stub returns two vectors for each, so the first one fails.
 */
START_TEST(a_request_has_at_most_64_texts)
{
    SET_UP(TWO_VECTORS);
    text_count = 150;
    struct asker a;
    stderr_begin();
    start(&a, embed);
    finish(&a);
    stderr_end();
    ck_assert_int_eq(a.err, ERR_EMBEDDER_UNAVAILABLE);
    int count = 0;
    for (const char *p = stub.seen; (p = strstr(p, "\"first\"")); p++)
        count++;
    for (const char *p = stub.seen; (p = strstr(p, "\"second\"")); p++)
        count++;
    ck_assert_int_eq(count, 64);
    end(&a);
    tear_down();
}
END_TEST

UNIT_MAIN("remote", a_request_is_sent_as_json_and_its_response_is_returned, a_connection_is_reused,
          every_fault_has_its_outcome_and_only_transient_ones_are_retried,
          a_refused_connection_is_retried_and_reported, an_endless_response_is_refused_once_it_is_too_large,
          a_hanging_request_times_out_and_is_not_retried,
          a_hanging_name_lookup_blocks_neither_the_loop_nor_the_end_of_its_call,
          two_hundred_hanging_calls_cost_the_loop_nothing_and_delay_no_others,
          closing_ends_hanging_calls_and_those_waiting_for_a_retry,
          a_call_also_times_out_while_it_waits_for_a_retry, a_model_call_returns_its_answer_and_cost,
          the_cost_is_unknown_for_a_model_other_than_the_configured_one,
          each_failure_of_a_model_is_reported_without_the_key, a_hanging_model_has_its_own_timeout_error,
          without_a_model_a_call_is_refused, texts_become_vectors_of_length_one_in_their_own_order,
          three_failures_open_the_circuit_until_the_pause_is_over_and_one_success_closes_it,
          texts_refused_as_a_batch_are_sent_one_by_one,
          texts_refused_at_any_length_are_a_failure_if_no_other_text_is_accepted,
          refused_texts_get_zeros_if_another_text_is_accepted,
          a_text_refused_at_any_length_gets_zeros_and_does_not_affect_the_other,
          a_request_has_at_most_64_texts)

/* The wire protocols: the exact bytes sent, and the parsing of responses. */
#include "server/remote/llm_wire.h"

#include "server/remote/embedder_wire.h"
#include "tests/core/unit.h"

static struct arena arena;

/* ---- requests ---- */

static const char *body_of(const char *api, const struct llm_question *q, const char *temperature)
{
    struct buf b = { .arena = &arena };
    const struct llm_options o = { temperature, "max_tokens" };
    llm_wire_find(api)->write(&b, q, &o);
    return buf_string(&b);
}

static const struct llm_question question = { .system = "You are \"terse\".\nTwo lines.",
                                              .user = "{\"ticker\":\"A\xc3\xa9\"}",
                                              .model = "some-model-1",
                                              .max_tokens = 1024 };

START_TEST(anthropic_gets_the_system_prompt_marked_for_caching)
{
    ck_assert_str_eq(
        body_of("anthropic", &question, "0"),
        "{\"model\":\"some-model-1\",\"max_tokens\":1024,\"temperature\":0,\"system\":[{\"type\":"
        "\"text\",\"text\":\"You are \\\"terse\\\".\\nTwo lines.\",\"cache_control\":{\"type\":"
        "\"ephemeral\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"{\\\"ticker\\\":\\\"A\xc3\xa9"
        "\\\"}\"}]}");
    arena_release(&arena);
}
END_TEST

START_TEST(openai_gets_the_system_prompt_as_its_first_message)
{
    ck_assert_str_eq(
        body_of("openai", &question, "0.2"),
        "{\"model\":\"some-model-1\",\"max_tokens\":1024,\"temperature\":0.2,\"messages\":[{\"role\":"
        "\"system\",\"content\":\"You are \\\"terse\\\".\\nTwo lines.\"},{\"role\":\"user\","
        "\"content\":\"{\\\"ticker\\\":\\\"A\xc3\xa9\\\"}\"}]}");
    arena_release(&arena);
}
END_TEST

START_TEST(absent_parameters_are_not_sent)
{
    const struct llm_question q = { .user = "u", .model = "m", .max_tokens = 1 };
    ck_assert_str_eq(
        body_of("anthropic", &q, NULL),
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}");
    ck_assert_str_eq(
        body_of("openai", &q, NULL),
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}");
    ck_assert_ptr_null(llm_wire_find("other"));
    ck_assert_ptr_null(llm_wire_find(""));
    arena_release(&arena);
}
END_TEST

/* ---- responses ---- */

static bool read_answer(const char *body, struct llm_reading *out)
{
    size_t len = strlen(body);
    return llm_wire_read(arena_copy(&arena, body, len), len, &arena, out);
}

START_TEST(an_answer_of_anthropic_is_its_text_blocks)
{
    struct llm_reading r;
    ck_assert(read_answer("{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-2\","
                          "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"text\":\"no\"},"
                          "{\"type\":\"text\",\"text\":\"Gr\\u00fc\"},{\"text\":\"n\",\"type\":\"text\"},"
                          "{\"type\":\"tool_use\",\"input\":{\"a\":[1]}},7],\"stop_reason\":\"end_turn\","
                          "\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":200,"
                          "\"cache_read_input_tokens\":3000,\"output_tokens\":5,\"service_tier\":\"x\"}}",
                          &r));
    ck_assert_str_eq(r.text, "Gr\xc3\xbcn");
    ck_assert_str_eq(r.model, "m-2");
    ck_assert(!r.truncated && !r.error);
    ck_assert_int_eq(r.tokens_in, 3210);
    ck_assert_int_eq(r.cache_written, 200);
    ck_assert_int_eq(r.cache_read, 3000);
    ck_assert_int_eq(r.tokens_out, 5);
    arena_release(&arena);
}
END_TEST

START_TEST(an_answer_of_openai_is_the_content_of_its_choice)
{
    struct llm_reading r;
    ck_assert(read_answer("{\"object\":\"chat.completion\",\"error\":null,\"choices\":[{\"index\":0,"
                          "\"message\":{\"role\":\"assistant\",\"content\":\"yes\",\"refusal\":null},"
                          "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,"
                          "\"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens\":2}}",
                          &r));
    ck_assert_str_eq(r.text, "yes");
    ck_assert_ptr_null(r.model);
    ck_assert_ptr_null(r.error);
    ck_assert_int_eq(r.tokens_in, 7);
    ck_assert_int_eq(r.tokens_out, 2);
    ck_assert(
        read_answer("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}", &r));
    ck_assert_str_eq(r.text, "a");
    arena_release(&arena);
}
END_TEST

START_TEST(a_truncated_answer_is_marked)
{
    struct llm_reading r;
    ck_assert(
        read_answer("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"max_tokens\"}", &r));
    ck_assert(r.truncated);
    ck_assert(
        read_answer("{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}", &r));
    ck_assert(r.truncated);
    arena_release(&arena);
}
END_TEST

START_TEST(answers_without_text_are_recognised)
{
    static const char *const without[] = {
        "{}",
        "{\"content\":[]}",
        "{\"content\":null}",
        "{\"content\":[{\"type\":\"text\"}]}",
        "{\"choices\":[]}",
        "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"no\"}}]}",
        "{\"choices\":{}}",
        "{\"choices\":[null]}",
        "{\"error\":{\"type\":\"x\"}}",
    };
    struct llm_reading r;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        ck_assert_msg(read_answer(without[i], &r), "refused: %s", without[i]);
        ck_assert_ptr_null(r.text);
    }
    ck_assert(read_answer("{\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", &r));
    ck_assert_str_eq(r.text, ""); /* an explicitly empty text */
    static const char *const bad[] = {
        "", "[]", "null", "\"x\"", "{\"content\":[", "{\"content\":\"a\"} x", "<html>"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!read_answer(bad[i], &r), "taken: %s", bad[i]);
    arena_release(&arena);
}
END_TEST

START_TEST(only_a_plain_word_of_an_error_is_used)
{
    struct llm_reading r;
    ck_assert(
        read_answer("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}", &r));
    ck_assert_str_eq(r.error, "overloaded_error");
    ck_assert(read_answer("{\"error\":{\"message\":\"m\",\"type\":\"key sk-1 is bad\",\"code\":1}}", &r));
    ck_assert_str_eq(r.error, "error");
    ck_assert(read_answer("{\"error\":\"model not found\"}", &r));
    ck_assert_ptr_null(r.error);
    arena_release(&arena);
}
END_TEST

/* ---- costs ---- */

START_TEST(costs_are_exact)
{
    static const struct {
        struct llm_reading reading;
        const char *in, *out, *cost;
    } cases[] = {
        { { .tokens_in = 1000000, .tokens_out = 1000000 }, "3", "15", "18" },
        { { .tokens_in = 1, .tokens_out = 0 }, "0.15", "0.6", "0.00000015" },
        { { .tokens_in = 1234, .tokens_out = 567 }, "3", "15", "0.012207" },
        { { .tokens_in = 3210, .cache_written = 200, .cache_read = 3000, .tokens_out = 5 },
          "3",
          "15",
          "0.001755" },
        { { .tokens_in = 0, .tokens_out = 0 }, "3", "15", "0" },
        { { .tokens_in = 7, .tokens_out = 3 }, "0.000001", "0", "0.000000000007" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct decimal in, out;
        char text[DECIMAL_TEXT_SIZE];
        decimal_parse(cases[i].in, &in);
        decimal_parse(cases[i].out, &out);
        decimal_text(llm_wire_cost(&cases[i].reading, in, out), text);
        ck_assert_str_eq(text, cases[i].cost);
    }
}
END_TEST

/* ---- embeddings ---- */

START_TEST(texts_are_sent_in_order_and_truncated_between_characters)
{
    static const char *const texts[] = { "a \"b\"\n", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" };
    struct embedder_wire_request r = { .model = "e-1", .texts = texts, .count = 2, .most_bytes = 7 };
    struct buf b = { .arena = &arena };
    embedder_wire_write(&b, &r);
    ck_assert_str_eq(buf_string(&b),
                     "{\"model\":\"e-1\",\"input\":[\"a \\\"b\\\"\\n\",\"\xc3\xa9\xc3\xa9\xc3\xa9\"],"
                     "\"encoding_format\":\"float\"}");
    b.len = 0;
    r.shorten_to = 256;
    r.count = 1;
    embedder_wire_write(&b, &r);
    ck_assert_str_eq(buf_string(&b),
                     "{\"model\":\"e-1\",\"input\":[\"a \\\"b\\\"\\n\"],\"encoding_format\":\"float\","
                     "\"dimensions\":256}");
    arena_release(&arena);
}
END_TEST

static float vectors[4];

/* Of two texts, in two dimensions. */
static enum embedder_wire_fault read_vectors(const char *body)
{
    size_t len = strlen(body);
    struct embedder_wire w = { .count = 2, .dim = 2, .out = vectors };
    embedder_wire_begin(&w, arena_copy(&arena, body, len), len, &arena);
    while (embedder_wire_next(&w))
        ;
    return w.fault;
}

START_TEST(vectors_are_assigned_by_their_index)
{
    static const char *const bodies[] = {
        "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.5,0]},"
        "{\"object\":\"embedding\",\"index\":1,\"embedding\":[0,-3e-1]}],\"model\":\"e\",\"usage\":{\"total_"
        "tokens\":3}}",
        "{\"usage\":[{}],\"data\":[{\"embedding\":[0,-7],\"index\":1},{\"embedding\":[2,0.0],\"index\":0}]}",
        "{\"data\":[{\"embedding\":[1,0]},{\"embedding\":[0,-1]}]}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        memset(vectors, 0, sizeof vectors);
        ck_assert_int_eq(read_vectors(bodies[i]), EMBEDDINGS_OK);
        ck_assert(vectors[0] == 1 && vectors[1] == 0 && vectors[2] == 0 && vectors[3] == -1);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(unexpected_vectors_are_refused)
{
    static const struct {
        const char *data;
        enum embedder_wire_fault fault;
    } cases[] = {
        { "[]", EMBEDDINGS_NUMBER },
        { "[{\"index\":0,\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"index\":0,\"embedding\":[1,0]},{\"index\":0,\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"index\":0,\"embedding\":[1,0]},{\"index\":2,\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"index\":-1,\"embedding\":[1,0]},{\"index\":0,\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"index\":\"0\",\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"embedding\":[1,0]},{\"embedding\":[1,0]},{\"embedding\":[1,0]}]", EMBEDDINGS_NUMBER },
        { "[{\"embedding\":[1]},{\"embedding\":[1,0]}]", EMBEDDINGS_DIMENSION },
        { "[{\"embedding\":[1,0,0]},{\"embedding\":[1,0]}]", EMBEDDINGS_DIMENSION },
        { "[{\"embedding\":[]},{\"embedding\":[1,0]}]", EMBEDDINGS_DIMENSION },
        { "[{\"embedding\":[0,0]},{\"embedding\":[1,0]}]", EMBEDDINGS_VECTOR },
        { "[{\"embedding\":[1,null]},{\"embedding\":[1,0]}]", EMBEDDINGS_VECTOR },
        { "[{\"embedding\":[1,NaN]},{\"embedding\":[1,0]}]", EMBEDDINGS_VECTOR },
        { "[{\"embedding\":[1,1e999]},{\"embedding\":[1,0]}]", EMBEDDINGS_VECTOR },
        { "[{\"embedding\":[1,\"0\"]},{\"embedding\":[1,0]}]", EMBEDDINGS_VECTOR },
        { "[{\"embedding\":\"AAAA\"},{\"embedding\":[1,0]}]", EMBEDDINGS_NOT_JSON },
        { "[{\"index\":0},{\"embedding\":[1,0]}]", EMBEDDINGS_NOT_JSON },
        { "[1,2]", EMBEDDINGS_NOT_JSON },
        { "{}", EMBEDDINGS_NOT_JSON },
        { "null", EMBEDDINGS_NOT_JSON },
        { "[{\"embedding\":[1,0]},{\"embedding\":[1", EMBEDDINGS_NOT_JSON },
        { "[{\"embedding\":[1,0]},{\"embedding\":[1,0]}]}x", EMBEDDINGS_NOT_JSON },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum embedder_wire_fault fault = read_vectors(arena_fmt(&arena, "{\"data\":%s}", cases[i].data));
        ck_assert_msg(fault == cases[i].fault, "%s: %s", cases[i].data, embedder_wire_faults[fault]);
    }
    static const char *const bad[] = { "", "[]", "{}", "{\"error\":{}}", "<html>", "{\"data\":" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(read_vectors(bad[i]), EMBEDDINGS_NOT_JSON);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("remote_wire", anthropic_gets_the_system_prompt_marked_for_caching,
          openai_gets_the_system_prompt_as_its_first_message, absent_parameters_are_not_sent,
          an_answer_of_anthropic_is_its_text_blocks, an_answer_of_openai_is_the_content_of_its_choice,
          a_truncated_answer_is_marked, answers_without_text_are_recognised,
          only_a_plain_word_of_an_error_is_used, costs_are_exact,
          texts_are_sent_in_order_and_truncated_between_characters, vectors_are_assigned_by_their_index,
          unexpected_vectors_are_refused)

/* The wire protocols of language models. */
#include "server/remote/llm_wire.h"

#include <ctype.h>
#include <string.h>

#include "server/json/reader.h"

/* ---- requests ---- */

static void put_text(struct buf *b, const char *key, const char *text)
{
    buf_json_key(b, key);
    buf_json_string(b, text);
}

static void put_settings(struct buf *b, const struct llm_question *q, const struct llm_options *o)
{
    put_text(b, "model", q->model);
    buf_json_key(b, o->tokens_name);
    buf_fmt(b, "%lld", (long long)q->max_tokens);
    if (o->temperature) {
        buf_json_key(b, "temperature");
        buf_text(b, o->temperature);
    }
}

static void put_message(struct buf *b, const char *role, const char *text)
{
    buf_char(b, '{');
    put_text(b, "role", role);
    put_text(b, "content", text);
    buf_char(b, '}');
}

/* Marks the system prompt for the provider's prompt cache, because it rarely changes. */
static void anthropic(struct buf *b, const struct llm_question *q, const struct llm_options *o)
{
    buf_char(b, '{');
    put_settings(b, q, o);
    if (q->system && *q->system) {
        buf_json_key(b, "system");
        buf_text(b, "[{");
        put_text(b, "type", "text");
        put_text(b, "text", q->system);
        buf_json_key(b, "cache_control");
        buf_text(b, "{\"type\":\"ephemeral\"}}]");
    }
    buf_json_key(b, "messages");
    buf_char(b, '[');
    put_message(b, "user", q->user);
    buf_text(b, "]}");
}

static void openai(struct buf *b, const struct llm_question *q, const struct llm_options *o)
{
    buf_char(b, '{');
    put_settings(b, q, o);
    buf_json_key(b, "messages");
    buf_char(b, '[');
    if (q->system && *q->system) {
        put_message(b, "system", q->system);
        buf_char(b, ',');
    }
    put_message(b, "user", q->user);
    buf_text(b, "]}");
}

static const struct llm_wire wires[] = {
    { "anthropic", "https://api.anthropic.com", "messages",
      "x-api-key: ", (const char *const[]){ "anthropic-version: 2023-06-01", NULL }, anthropic },
    { "openai", "https://api.openai.com", "chat/completions", "Authorization: Bearer ",
      (const char *const[]){ NULL }, openai },
};

const struct llm_wire *llm_wire_find(const char *api)
{
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        if (strcmp(wires[i].api, api) == 0)
            return &wires[i];
    return NULL;
}

/* ---- answers ---- */

static bool is(const char *name, const char *other)
{
    return name && strcmp(name, other) == 0;
}

/* Accepts only a short identifier; other error texts may echo the prompt. */
static const char *plain_word(const char *text)
{
    size_t len = text ? strlen(text) : 0;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            return NULL;
    return len && len <= 64 ? text : NULL;
}

static void read_usage(struct json_reader *r, struct llm_reading *out)
{
    int64_t fresh = 0;
    if (!reader_object(r))
        return;
    for (const char *name; (name = reader_name(r));) {
        if (is(name, "input_tokens") || is(name, "prompt_tokens"))
            fresh = reader_count(r);
        else if (is(name, "output_tokens") || is(name, "completion_tokens"))
            out->tokens_out = reader_count(r);
        else if (is(name, "cache_creation_input_tokens"))
            out->cache_written = reader_count(r);
        else if (is(name, "cache_read_input_tokens"))
            out->cache_read = reader_count(r);
        else
            reader_skip(r);
    }
    out->tokens_in = fresh + out->cache_written + out->cache_read;
}

static void read_error(struct json_reader *r, struct llm_reading *out)
{
    if (!reader_object(r)) /* some send "error": null */
        return;
    out->error = "error";
    for (const char *name; (name = reader_name(r));) {
        const char *word = is(name, "type") ? plain_word(reader_text(r)) : (reader_skip(r), NULL);
        if (word)
            out->error = word;
    }
}

/* Appends a part of the answer. An empty text still counts as an answer. */
static void add_text(struct buf *all, const char *text)
{
    if (!text)
        return;
    buf_room(all, 1);
    buf_text(all, text);
}

/* A text, or [{"type":"text","text":"…"}, …]. Skips other types, such as thinking. */
static void read_content(struct json_reader *r, struct buf *all)
{
    if (reader_peek(r) != '[') {
        add_text(all, reader_text(r));
        return;
    }
    reader_list(r);
    while (reader_item(r)) {
        const char *type = NULL, *text = NULL;
        if (!reader_object(r))
            continue;
        for (const char *name; (name = reader_name(r));) {
            if (is(name, "type"))
                type = reader_text(r);
            else if (is(name, "text"))
                text = reader_text(r);
            else
                reader_skip(r);
        }
        if (is(type, "text"))
            add_text(all, text);
    }
}

static void read_message(struct json_reader *r, struct buf *all)
{
    if (!reader_object(r))
        return;
    for (const char *name; (name = reader_name(r));) {
        if (is(name, "content"))
            read_content(r, all);
        else
            reader_skip(r);
    }
}

/* OpenAI: [{"message":{"content":"…"},"finish_reason":"stop"}]. We request one choice. */
static void read_choices(struct json_reader *r, struct buf *all, struct llm_reading *out)
{
    if (!reader_list(r))
        return;
    while (reader_item(r)) {
        if (!reader_object(r))
            continue;
        for (const char *name; (name = reader_name(r));) {
            if (is(name, "message"))
                read_message(r, all);
            else if (is(name, "finish_reason"))
                out->truncated |= is(reader_text(r), "length");
            else
                reader_skip(r);
        }
    }
}

bool llm_wire_read(char *body, size_t len, struct arena *arena, struct llm_reading *out)
{
    *out = (struct llm_reading){ 0 };
    struct buf all = { .arena = arena };
    struct json_reader r = reader_begin(body, len, READER_DEPTH);
    if (!reader_object(&r))
        return false;
    for (const char *name; (name = reader_name(&r));) {
        if (is(name, "content"))
            read_content(&r, &all);
        else if (is(name, "choices"))
            read_choices(&r, &all, out);
        else if (is(name, "stop_reason"))
            out->truncated |= is(reader_text(&r), "max_tokens");
        else if (is(name, "model"))
            out->model = reader_text(&r);
        else if (is(name, "usage"))
            read_usage(&r, out);
        else if (is(name, "error"))
            read_error(&r, out);
        else
            reader_skip(&r);
    }
    out->text = all.data ? buf_string(&all) : NULL;
    return reader_ended(&r);
}

/* ---- costs ---- */

static struct decimal priced(int64_t tokens, struct decimal price, int64_t twentieths)
{
    struct decimal million_twentieths = decimal_from_int(20 * 1000 * 1000);
    return decimal_div(
        decimal_mul(decimal_mul(decimal_from_int(tokens), decimal_from_int(twentieths)), price),
        million_twentieths);
}

struct decimal llm_wire_cost(const struct llm_reading *r, struct decimal price_in, struct decimal price_out)
{
    struct decimal cost = priced(r->tokens_in - r->cache_written - r->cache_read, price_in, 20);
    cost = decimal_add(cost, priced(r->cache_written, price_in, 25));
    cost = decimal_add(cost, priced(r->cache_read, price_in, 2));
    return decimal_add(cost, priced(r->tokens_out, price_out, 20));
}

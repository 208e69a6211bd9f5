/* The configured language model: one prompt, one answer. */
#include "server/remote/llm.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/remote/llm_wire.h"
#include "server/remote/prices.h"
#include "server/remote/retry.h"
#include "server/remote/url.h"

enum { MAX_HEADERS = 4 };

static const struct retry_policy policy = { .tries = 6, .first_ms = 500, .most_ms = 20000 };

struct llm {
    struct arena arena;
    const struct llm_wire *wire;
    struct llm_options options;
    const char *url, *host, *name;
    const char *headers[MAX_HEADERS];
    struct prices prices;
};

static void set_headers(struct llm *m, const char *key)
{
    int n = 0;
    if (*key)
        m->headers[n++] = arena_fmt(&m->arena, "%s%s", m->wire->key_header, key);
    for (const char *const *h = m->wire->headers; *h; h++)
        m->headers[n++] = *h;
}

/* Adds the price of the default model to the table. */
static void set_prices(struct llm *m, const struct config *config)
{
    const char *wrong;
    struct price own = { .model = config->model_name };
    (void)prices_read(&m->arena, config->model_prices, &m->prices, &wrong);
    if (!config->model_price_input[0])
        return;
    decimal_parse(config->model_price_input, &own.in);
    decimal_parse(config->model_price_output, &own.out);
    m->prices.items[m->prices.count++] = own;
}

struct llm *llm_open(const struct loop *l)
{
    const struct config *config = l->config;
    if (!config->model_api[0])
        return NULL;
    struct llm *m = memory_zero(1, sizeof *m);
    m->wire = llm_wire_find(config->model_api);
    m->url = url_of(&m->arena, config->model_url[0] ? config->model_url : m->wire->url, m->wire->tail);
    m->host = url_host(&m->arena, m->url);
    m->name = config->model_name;
    m->options.temperature = strcmp(config->model_temperature, "none") ? config->model_temperature : NULL;
    /* OpenAI's newer models reject the common name. */
    m->options.tokens_name = strcmp(m->host, "api.openai.com") == 0 ? "max_completion_tokens" : "max_tokens";
    set_headers(m, config->model_key);
    set_prices(m, config);
    return m;
}

void llm_close(struct llm *m)
{
    if (!m)
        return;
    arena_release(&m->arena);
    free(m);
}

bool llm_configured(const struct loop *l)
{
    return l->llm != NULL;
}

/* ---- answers ---- */

static const char *tries_text(struct task *t, int tries)
{
    return tries == 1 ? "" : arena_fmt(t->arena, ", after %d tries", tries);
}

static enum err no_answer(struct task *t, const struct remote_answer *r, int tries)
{
    if (r->outcome == REMOTE_TIMEOUT)
        return problem_set(t->problem, ERR_MODEL_TIMEOUT, "there was no answer within %lld ms",
                           (long long)t->loop->config->model_timeout_ms);
    return problem_set(t->problem, ERR_MODEL_FAILED, "%s%s", r->why, tries_text(t, tries));
}

static enum err error_status(struct task *t, const struct remote_answer *r, const struct llm_reading *reading,
                             int tries)
{
    const char *wait = r->retry_after_ms < 0 ? ""
                                             : arena_fmt(t->arena, " and asks to wait %lld s",
                                                         (long long)r->retry_after_ms / 1000);
    return problem_set(t->problem, ERR_MODEL_FAILED, "it answered %d%s%s%s%s", r->status,
                       reading->error ? " " : "", reading->error ? reading->error : "", tries_text(t, tries),
                       wait);
}

static const char *cost_text(struct task *t, const struct llm *m, const char *asked,
                             const struct llm_reading *reading)
{
    const struct price *price = prices_find(&m->prices, asked);
    if (!price)
        return NULL;
    struct decimal cost = llm_wire_cost(reading, price->in, price->out);
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(cost, text);
    return decimal_is_valid(cost) ? arena_text(t->arena, text) : NULL;
}

static enum err read_answer(struct task *t, const struct llm *m, const struct remote_answer *r, int tries,
                            struct llm_answer *answer)
{
    struct llm_reading reading;
    if (r->outcome != REMOTE_ANSWERED)
        return no_answer(t, r, tries);
    bool valid = llm_wire_read(r->body, r->len, t->arena, &reading);
    if (r->status < 200 || r->status > 299)
        return error_status(t, r, &reading, tries);
    if (!valid)
        return problem_set(t->problem, ERR_MODEL_FAILED, "it answered %d with something else than JSON",
                           r->status);
    if (!reading.text)
        return problem_set(t->problem, ERR_MODEL_FAILED, "it answered %d without a text%s%s", r->status,
                           reading.error ? ": " : "", reading.error ? reading.error : "");
    answer->text = reading.text;
    answer->cost_usd = cost_text(t, m, answer->model, &reading);
    if (reading.model && *reading.model)
        answer->model = reading.model;
    answer->truncated = reading.truncated;
    answer->tokens_in = reading.tokens_in;
    answer->tokens_out = reading.tokens_out;
    return OK;
}

/* ---- requests ---- */

static enum err ask(struct task *t, const struct llm *m, const struct llm_question *question,
                    struct llm_answer *answer, int *tries)
{
    struct buf body = { .arena = t->arena };
    m->wire->write(&body, question, &m->options);
    const struct remote_request request = {
        .url = m->url,
        .headers = m->headers,
        .body = body.data,
        .body_len = body.len,
        .limit_ms = t->loop->config->model_timeout_ms,
    };
    struct remote_answer r;
    TRY(retry_post(t, &request, &policy, &r, tries));
    *answer = (struct llm_answer){ .model = question->model };
    return read_answer(t, m, &r, *tries, answer);
}

/* `asked`: the model that the question names. */
static void account(struct task *t, const char *asked, enum err err, int tries, int64_t us,
                    const struct llm_answer *answer)
{
    static const struct {
        enum err err;
        enum metrics_outcome outcome;
    } outcomes[] = { { OK, OUTCOME_OK },
                     { ERR_MODEL_FAILED, OUTCOME_FAILED },
                     { ERR_MODEL_TIMEOUT, OUTCOME_TIMEOUT } };
    enum metrics_outcome outcome = OUTCOME_GIVEN_UP;
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (outcomes[i].err == err)
            outcome = outcomes[i].outcome;
    metrics_remote(t->loop->metrics, METRICS_MODEL, outcome, us, tries);
    if (err == OK)
        metrics_tokens(t->loop->metrics, answer->tokens_in, answer->tokens_out);
    else if (outcome != OUTCOME_GIVEN_UP)
        log_event(LOG_WARN, problem_code(err),
                  "host=%s model=\"%s\" tries=%d ms=%lld request_id=%s why=\"%s\"", t->loop->llm->host, asked,
                  tries, (long long)us / 1000, t->id, t->problem->detail);
}

enum err llm_ask(struct task *t, const struct llm_question *question, struct llm_answer *answer)
{
    const struct llm *m = t->loop->llm;
    if (!m)
        return problem_set(t->problem, ERR_MODEL_NOT_CONFIGURED,
                           "the service was started without --model-api");
    struct llm_question q = *question;
    int64_t limit = t->loop->config->model_max_tokens, started_us = loop_clock_us();
    if (!q.model)
        q.model = m->name;
    if (q.max_tokens < 1 || q.max_tokens > limit)
        q.max_tokens = limit;
    int tries = 0;
    enum err err = ask(t, m, &q, answer, &tries);
    account(t, q.model, err, tries, loop_clock_us() - started_us, answer);
    return err;
}

/* Checks the settings of language models and embedding endpoints at start. */
#include "server/remote/remote_check.h"

#include <string.h>

#include "core/base/utf8.h"
#include "core/embed/embed.h"
#include "server/log.h"
#include "server/remote/prices.h"
#include "server/remote/url.h"

enum { MAX_KEY_BYTES = 4096, MAX_NAME_BYTES = 100 };

/* The key must be valid in a header. */
static bool is_key(const char *key)
{
    for (const char *p = key; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return strlen(key) <= MAX_KEY_BYTES;
}

static bool is_name(const char *name)
{
    size_t len = strlen(name);
    if (!len || len > MAX_NAME_BYTES || utf8_check(name, len) != len)
        return false;
    for (const char *p = name; *p;)
        if (utf8_is_control(utf8_next(&p)))
            return false;
    return true;
}

static bool is_amount(const char *text, int64_t most)
{
    struct decimal d;
    return prices_amount(text, most, &d);
}

static bool check_url(const char *option, const char *url)
{
    return !url[0] || url_is_valid(url) ||
           log_failure("%s must be an http or https URL without user, password or fragment", option);
}

static bool check_key(const char *option, const char *key)
{
    return is_key(key) || log_failure("%s must be visible ASCII characters", option);
}

static bool check_price(const char *option, const char *price)
{
    return !price[0] || is_amount(price, PRICE_MAX) ||
           log_failure("%s must be a number from 0 to %d, not \"%s\"", option, PRICE_MAX, price);
}

static bool are_names(const struct prices *prices)
{
    for (size_t i = 0; i < prices->count; i++)
        if (!is_name(prices->items[i].model))
            return false;
    return true;
}

static bool check_prices(const struct config *c)
{
    struct arena arena = { 0 };
    struct prices prices;
    const char *wrong = "";
    bool good = true;
    if (!prices_read(&arena, c->model_prices, &prices, &wrong))
        good = log_failure(
            "--model-prices must be NAME=INPUT/OUTPUT for each model once, with prices from 0 to %d: "
            "\"%s\" is not",
            PRICE_MAX, wrong);
    else if (!are_names(&prices))
        good =
            log_failure("--model-prices must name models, each with at most %d characters", MAX_NAME_BYTES);
    else if (c->model_price_input[0] && prices_find(&prices, c->model_name))
        good = log_failure("--model-prices has a price of %s, and so has --model-price-input", c->model_name);
    arena_release(&arena);
    return good;
}

/* An option without the option that it depends on is an error. */
static bool check_unused(const char *needed, const char *option, const char *value)
{
    return !value[0] || log_failure("%s is given without %s", option, needed);
}

static bool check_model(const struct config *c)
{
    if (!c->model_api[0])
        return check_unused("--model-api", "--model-url", c->model_url) &&
               check_unused("--model-api", "--model-key", c->model_key) &&
               check_unused("--model-api", "--model-name", c->model_name) &&
               check_unused("--model-api", "--model-price-input", c->model_price_input) &&
               check_unused("--model-api", "--model-price-output", c->model_price_output) &&
               check_unused("--model-api", "--model-prices", c->model_prices);
    if (!is_name(c->model_name))
        return log_failure("--model-api %s needs --model-name, of at most %d characters", c->model_api,
                           MAX_NAME_BYTES);
    if (!c->model_key[0] && !c->model_url[0])
        return log_failure("--model-api %s needs --model-key, or a --model-url that takes none",
                           c->model_api);
    if (strcmp(c->model_temperature, "none") && !is_amount(c->model_temperature, 2))
        return log_failure("--model-temperature must be a number from 0 to 2 or none, not \"%s\"",
                           c->model_temperature);
    if (!c->model_price_input[0] != !c->model_price_output[0])
        return log_failure("--model-price-input and --model-price-output must be given together");
    return check_url("--model-url", c->model_url) && check_key("--model-key", c->model_key) &&
           check_price("--model-price-input", c->model_price_input) &&
           check_price("--model-price-output", c->model_price_output) && check_prices(c);
}

static bool check_embedding(const struct config *c)
{
    if (!c->embedding_url[0])
        return check_unused("--embedding-url", "--embedding-key", c->embedding_key) &&
               check_unused("--embedding-url", "--embedding-model", c->embedding_model) &&
               check_unused("--embedding-url", "--embedding-dimension", c->embedding_dimension ? "1" : "");
    if (!is_name(c->embedding_model))
        return log_failure("--embedding-url needs --embedding-model, of at most %d characters",
                           MAX_NAME_BYTES);
    if (strcmp(c->embedding_model, EMBED_MODEL) == 0)
        return log_failure("--embedding-model %s is the name of the built-in embedder", EMBED_MODEL);
    if (!c->embedding_dimension)
        return log_failure("--embedding-url needs --embedding-dimension: how many numbers its vectors have");
    if (c->embedding_timeout_ms > c->model_timeout_ms)
        return log_failure("--embedding-timeout-ms must not be more than --model-timeout-ms");
    return check_url("--embedding-url", c->embedding_url) && check_key("--embedding-key", c->embedding_key);
}

bool remote_check(const struct config *c)
{
    return check_model(c) && check_embedding(c);
}

bool remote_check_configured(const struct config *c)
{
    return c->model_api[0] || c->embedding_url[0];
}

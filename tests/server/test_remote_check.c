/* Settings of models and endpoints: invalid ones are refused at start, and no key is ever shown. */
#include "server/remote/remote_check.h"

#include "tests/core/unit.h"
#include "tests/server/stderr.h"

enum { MOST_WORDS = 24 };

#define MODEL "--model-api anthropic --model-key sk-secret --model-name m "
#define VECTOR \
    "--embedding-url http://h --embedding-key sk-secret --embedding-model e --embedding-dimension 8 "

static struct config config;

static bool check(const char *words)
{
    static char text[8192];
    char *argv[MOST_WORDS + 2] = { "daybookd" };
    int argc = 1;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word && argc <= MOST_WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    ck_assert(config_read(&config, &argc, argv));
    return remote_check(&config);
}

static void refused(const char *words, const char *expected)
{
    stderr_begin();
    bool taken = check(words);
    const char *said = stderr_end();
    ck_assert_msg(!taken, "taken: %s", words);
    ck_assert_str_eq(said, expected);
    ck_assert_ptr_null(strstr(said, "secret"));
}

START_TEST(without_settings_nothing_is_required)
{
    ck_assert(check(""));
    ck_assert(!remote_check_configured(&config));
}
END_TEST

START_TEST(the_required_settings_are_enough)
{
    static const char *const enough[] = {
        MODEL,
        "--model-api openai --model-key sk-secret --model-name m",
        "--model-api openai --model-url http://127.0.0.1:11434/v1 --model-name m",
        MODEL "--model-price-input 0.25 --model-price-output 1.25",
        MODEL "--model-temperature none",
        MODEL "--model-temperature 0.7",
        VECTOR,
        "--embedding-url http://h --embedding-model e --embedding-dimension 4000 --embedding-shorten",
        MODEL VECTOR,
    };
    for (size_t i = 0; i < sizeof enough / sizeof *enough; i++) {
        ck_assert_msg(check(enough[i]), "refused: %s", enough[i]);
        ck_assert(remote_check_configured(&config));
    }
}
END_TEST

START_TEST(invalid_model_settings_are_refused_in_one_line)
{
    refused("--model-url http://h", "daybookd: --model-url is given without --model-api\n");
    refused("--model-key sk-secret", "daybookd: --model-key is given without --model-api\n");
    refused("--model-name m", "daybookd: --model-name is given without --model-api\n");
    refused("--model-price-input 1", "daybookd: --model-price-input is given without --model-api\n");
    refused("--model-price-output 1", "daybookd: --model-price-output is given without --model-api\n");
    refused("--model-api anthropic --model-key sk-secret",
            "daybookd: --model-api anthropic needs --model-name, of at most 100 characters\n");
    refused("--model-api openai --model-name m",
            "daybookd: --model-api openai needs --model-key, or a --model-url that takes none\n");
    refused(MODEL "--model-url ftp://h",
            "daybookd: --model-url must be an http or https URL without user, password or fragment\n");
    refused(MODEL "--model-url https://user:sk-secret@h",
            "daybookd: --model-url must be an http or https URL without user, password or fragment\n");
    refused(MODEL "--model-key sk-secret\x01", "daybookd: --model-key must be visible ASCII characters\n");
    refused(MODEL "--model-temperature hot",
            "daybookd: --model-temperature must be a number from 0 to 2 or none, not \"hot\"\n");
    refused(MODEL "--model-temperature 2.1",
            "daybookd: --model-temperature must be a number from 0 to 2 or none, not \"2.1\"\n");
    refused(MODEL "--model-price-input 1",
            "daybookd: --model-price-input and --model-price-output must be given together\n");
    refused(MODEL "--model-price-input -1 --model-price-output 1",
            "daybookd: --model-price-input must be a number from 0 to 1000000, not \"-1\"\n");
    refused(MODEL "--model-price-input 1 --model-price-output $1",
            "daybookd: --model-price-output must be a number from 0 to 1000000, not \"$1\"\n");
}
END_TEST

START_TEST(invalid_endpoint_settings_are_refused_in_one_line)
{
    refused("--embedding-key sk-secret", "daybookd: --embedding-key is given without --embedding-url\n");
    refused("--embedding-model e", "daybookd: --embedding-model is given without --embedding-url\n");
    refused("--embedding-dimension 8", "daybookd: --embedding-dimension is given without --embedding-url\n");
    refused("--embedding-url http://h --embedding-dimension 8",
            "daybookd: --embedding-url needs --embedding-model, of at most 100 characters\n");
    refused("--embedding-url http://h --embedding-model e",
            "daybookd: --embedding-url needs --embedding-dimension: how many numbers its vectors have\n");
    refused(VECTOR "--embedding-model builtin-1",
            "daybookd: --embedding-model builtin-1 is the name of the built-in embedder\n");
    refused(VECTOR "--embedding-url h",
            "daybookd: --embedding-url must be an http or https URL without user, password or fragment\n");
    refused(VECTOR "--embedding-timeout-ms 90001",
            "daybookd: --embedding-timeout-ms must not be more than --model-timeout-ms\n");
}
END_TEST

UNIT_MAIN("remote_check", without_settings_nothing_is_required, the_required_settings_are_enough,
          invalid_model_settings_are_refused_in_one_line, invalid_endpoint_settings_are_refused_in_one_line)

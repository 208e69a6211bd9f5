/* Settings: their sources, and the rejection of invalid ones. */
#include "server/config.h"

#include "tests/core/unit.h"
#include "tests/server/stderr.h"

enum { MOST_WORDS = 16 };

static struct config config;
static int argc;
static char *argv[MOST_WORDS + 2];

/* Reads these words, separated by spaces, as the command line. */
static bool read_words(const char *words)
{
    static char text[1024];
    snprintf(text, sizeof text, "%s", words);
    argc = 0;
    argv[argc++] = "daybookd";
    for (char *word = strtok(text, " "); word && argc <= MOST_WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return config_read(&config, &argc, argv);
}

static void refused(const char *words, const char *expected)
{
    stderr_begin();
    bool taken = read_words(words);
    const char *said = stderr_end();
    ck_assert_msg(!taken, "taken: %s", words);
    ck_assert_str_eq(said, expected);
}

START_TEST(unset_settings_have_the_defaults_of_the_table)
{
    ck_assert(read_words(""));
#define TEXT(name, fallback, help)             ck_assert_str_eq(config.name, fallback);
#define SECRET(name, help)                     ck_assert_str_eq(config.name, "");
#define NUMBER(name, fallback, min, max, help) ck_assert_int_eq(config.name, fallback);
#define FLAG(name, help)                       ck_assert(!config.name);
#include "server/settings.def"
#undef TEXT
#undef SECRET
#undef NUMBER
#undef FLAG
}
END_TEST

START_TEST(the_command_line_overrides_the_environment)
{
    setenv("DAYBOOK_LISTEN", "127.0.0.1:1", 1);
    setenv("DAYBOOK_MAX_BODY_BYTES", "2048", 1);
    setenv("DAYBOOK_HINTS", "true", 1);
    ck_assert(read_words(""));
    ck_assert_str_eq(config.listen, "127.0.0.1:1");
    ck_assert_int_eq(config.max_body_bytes, 2048);
    ck_assert(config.hints);
    ck_assert(read_words("--listen 127.0.0.1:2 --max-body-bytes=4096 --hints=false"));
    ck_assert_str_eq(config.listen, "127.0.0.1:2");
    ck_assert_int_eq(config.max_body_bytes, 4096);
    ck_assert(!config.hints);
}
END_TEST

START_TEST(an_empty_variable_counts_as_unset)
{
    setenv("DAYBOOK_LOOPS", "", 1);
    setenv("DAYBOOK_LOG_FORMAT", "", 1);
    ck_assert(read_words(""));
    ck_assert_int_eq(config.loops, 0);
    ck_assert_str_eq(config.log_format, "text");
}
END_TEST

START_TEST(arguments_that_are_not_settings_keep_their_order)
{
    ck_assert(read_words("key --loops 2 create --owner=ann --hints --role agent --log-level=warn --loopsy"));
    static const char *const kept[] = { "daybookd", "key",   "create",  "--owner=ann",
                                        "--role",   "agent", "--loopsy" };
    ck_assert_int_eq(argc, sizeof kept / sizeof *kept);
    for (int i = 0; i < argc; i++)
        ck_assert_str_eq(argv[i], kept[i]);
    ck_assert_ptr_null(argv[argc]);
    ck_assert_int_eq(config.loops, 2);
    ck_assert(config.hints);
}
END_TEST

START_TEST(every_number_is_accepted_up_to_its_limits_and_refused_beyond)
{
    static const struct {
        const char *name;
        long long min, max;
    } numbers[] = {
#define NUMBER(name, fallback, min, max, help) { #name, min, max },
#include "server/settings.def"
#undef NUMBER
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char option[64], words[128], message[256];
        snprintf(option, sizeof option, "--%s", numbers[i].name);
        for (char *p = option; *p; p++)
            *p = *p == '_' ? '-' : *p;
        const long long inside[] = { numbers[i].min, numbers[i].max };
        const long long outside[] = { numbers[i].min - 1, numbers[i].max + 1 };
        for (int k = 0; k < 2; k++) {
            snprintf(words, sizeof words, "%s=%lld", option, inside[k]);
            ck_assert_msg(read_words(words), "refused: %s", words);
            snprintf(words, sizeof words, "%s %lld", option, outside[k]);
            snprintf(message, sizeof message,
                     "daybookd: %s must be a whole number from %lld to %lld, not \"%lld\"\n", option,
                     numbers[i].min, numbers[i].max, outside[k]);
            refused(words, message);
        }
    }
}
END_TEST

START_TEST(a_value_that_is_not_an_integer_is_refused_by_name)
{
    static const char *const bad[] = { "x", "1x", "+1", "1.0", "0x10", "99999999999999999999", "1e3" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char words[128], message[256];
        snprintf(words, sizeof words, "--loops %s", bad[i]);
        snprintf(message, sizeof message,
                 "daybookd: --loops must be a whole number from 0 to 64, not \"%s\"\n", bad[i]);
        refused(words, message);
    }
    refused("--loops=", "daybookd: --loops must be a whole number from 0 to 64, not \"\"\n");
}
END_TEST

START_TEST(an_invalid_variable_is_refused_by_its_own_name)
{
    setenv("DAYBOOK_MAX_JSON_DEPTH", "3", 1);
    refused("", "daybookd: DAYBOOK_MAX_JSON_DEPTH must be a whole number from 4 to 1000, not \"3\"\n");
}
END_TEST

START_TEST(words_are_checked_against_their_choices)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char words[64];
        snprintf(words, sizeof words, "--log-level %s --log-format json", levels[i]);
        ck_assert(read_words(words));
        ck_assert_str_eq(config.log_level, levels[i]);
    }
    refused("--log-level loud", "daybookd: --log-level must be debug, info, warn or error, not \"loud\"\n");
    refused("--log-format=xml", "daybookd: --log-format must be text or json, not \"xml\"\n");
    refused("--hints=maybe", "daybookd: --hints must be true or false, not \"maybe\"\n");
}
END_TEST

START_TEST(a_setting_without_its_value_is_refused)
{
    refused("serve --data", "daybookd: --data needs a value\n");
    refused("serve --loops", "daybookd: --loops needs a value\n");
}
END_TEST

START_TEST(a_database_can_be_given_in_only_one_way)
{
    refused("--database-url x --data y",
            "daybookd: --database-url and --data exclude each other: give one of them\n");
    setenv("DAYBOOK_DATABASE_URL", "postgresql:///x", 1);
    ck_assert(read_words(""));
    ck_assert_str_eq(config.database_url, "postgresql:///x");
    ck_assert(read_words("--data y"));
    ck_assert_str_eq(config.database_url, "");
    setenv("DAYBOOK_DATA", "/var/lib/daybook", 1);
    ck_assert(read_words(""));
    ck_assert_str_eq(config.database_url, "postgresql:///x");
}
END_TEST

START_TEST(help_names_every_setting)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    config_help(f);
    fclose(f);
#define TEXT(name, fallback, help)             ck_assert_ptr_nonnull(strstr(text, help));
#define NUMBER(name, fallback, min, max, help) ck_assert_ptr_nonnull(strstr(text, help));
#define FLAG(name, help)                       ck_assert_ptr_nonnull(strstr(text, help));
#include "server/settings.def"
#undef TEXT
#undef NUMBER
#undef FLAG
    free(text);
}
END_TEST

UNIT_MAIN("config", unset_settings_have_the_defaults_of_the_table, the_command_line_overrides_the_environment,
          an_empty_variable_counts_as_unset, arguments_that_are_not_settings_keep_their_order,
          every_number_is_accepted_up_to_its_limits_and_refused_beyond,
          a_value_that_is_not_an_integer_is_refused_by_name, an_invalid_variable_is_refused_by_its_own_name,
          words_are_checked_against_their_choices, a_setting_without_its_value_is_refused,
          a_database_can_be_given_in_only_one_way, help_names_every_setting)

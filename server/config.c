/* Reads the settings from the environment and the command line, and checks them against settings.def. */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/log.h"

enum kind { KIND_TEXT, KIND_NUMBER, KIND_FLAG };

struct setting {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct config */
    const char *text;
    int64_t number, min, max;
    const char *help;
};

static const struct setting settings[] = {
#define TEXT(n, fallback, h) { #n, KIND_TEXT, offsetof(struct config, n), fallback, 0, 0, 0, h },
#define NUMBER(n, fallback, low, high, h) \
    { #n, KIND_NUMBER, offsetof(struct config, n), NULL, fallback, low, high, h },
#define FLAG(n, h) { #n, KIND_FLAG, offsetof(struct config, n), NULL, 0, 0, 0, h },
#include "server/settings.def"
#undef TEXT
#undef NUMBER
#undef FLAG
};

enum { SETTINGS = sizeof settings / sizeof *settings, NAME_SIZE = 64, WORDS_SIZE = 128 };

/* Settings with a fixed set of values. */
static const struct choice {
    const char *name, *words[5];
} choices[] = {
    { "log_format", { "text", "json" } },
    { "log_level", { "debug", "info", "warn", "error" } },
    { "model_api", { "anthropic", "openai" } },
    { "backfill", { "auto", "all", "off" } },
};

static const struct choice *find_choice(const char *setting)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].name, setting) == 0)
            return &choices[i];
    return NULL;
}

/* "a, b or c" */
static const char *choice_words(const struct choice *c, char out[WORDS_SIZE])
{
    size_t len = 0;
    for (int i = 0; c->words[i]; i++) {
        const char *before = i == 0 ? "" : c->words[i + 1] ? ", " : " or ";
        len += (size_t)snprintf(out + len, WORDS_SIZE - len, "%s%s", before, c->words[i]);
    }
    return out;
}

/* `--some-name` */
static const char *option_name(const struct setting *s, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "--%s", s->name);
    for (char *p = out; *p; p++) {
        if (*p == '_')
            *p = '-';
    }
    return out;
}

/* `DAYBOOK_SOME_NAME` */
static const char *environment_name(const struct setting *s, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "DAYBOOK_%s", s->name);
    for (char *p = out; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return out;
}

static bool set_text(const struct setting *s, void *to, const char *where, const char *value)
{
    const struct choice *c = find_choice(s->name);
    const char *const *word = c ? c->words : NULL;
    char words[WORDS_SIZE];
    while (c && *word && strcmp(*word, value) != 0)
        word++;
    if (c && !*word)
        return log_failure("%s must be %s, not \"%s\"", where, choice_words(c, words), value);
    *(const char **)to = value;
    return true;
}

static bool set_number(const struct setting *s, void *to, const char *where, const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool digits = isdigit((unsigned char)value[0]) || (value[0] == '-' && isdigit((unsigned char)value[1]));
    if (errno || !digits || *end || number < s->min || number > s->max)
        return log_failure("%s must be a whole number from %" PRId64 " to %" PRId64 ", not \"%s\"", where,
                           s->min, s->max, value);
    *(int64_t *)to = number;
    return true;
}

static bool set_flag(void *to, const char *where, const char *value)
{
    bool on = strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
    if (!on && strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
        return log_failure("%s must be true or false, not \"%s\"", where, value);
    *(bool *)to = on;
    return true;
}

static bool set(struct config *c, const struct setting *s, const char *where, const char *value)
{
    void *to = (char *)c + s->offset;
    switch (s->kind) {
    case KIND_TEXT:
        return set_text(s, to, where, value);
    case KIND_NUMBER:
        return set_number(s, to, where, value);
    default:
        return set_flag(to, where, value);
    }
}

static void set_defaults(struct config *c)
{
    for (int i = 0; i < SETTINGS; i++) {
        void *to = (char *)c + settings[i].offset;
        if (settings[i].kind == KIND_TEXT)
            *(const char **)to = settings[i].text;
        else if (settings[i].kind == KIND_NUMBER)
            *(int64_t *)to = settings[i].number;
        else
            *(bool *)to = false;
    }
}

/* An empty variable counts as unset: compose files pass unset variables as empty ones. */
static bool read_environment(struct config *c)
{
    for (int i = 0; i < SETTINGS; i++) {
        char name[NAME_SIZE];
        const char *value = getenv(environment_name(&settings[i], name));
        if (value && *value && !set(c, &settings[i], name, value))
            return false;
    }
    return true;
}

/* Finds the setting of an option, and its value after a `=`. */
static const struct setting *find(const char *word, const char **value)
{
    *value = NULL;
    for (int i = 0; i < SETTINGS; i++) {
        char name[NAME_SIZE];
        size_t len = strlen(option_name(&settings[i], name));
        if (strncmp(word, name, len) != 0 || (word[len] && word[len] != '='))
            continue;
        if (word[len])
            *value = word + len + 1;
        return &settings[i];
    }
    return NULL;
}

static bool read_arguments(struct config *c, int *argc, char **argv)
{
    bool url = false, data = false;
    int remaining = 1;
    for (int i = 1; i < *argc; i++) {
        const char *value;
        const struct setting *s = find(argv[i], &value);
        if (!s) {
            argv[remaining++] = argv[i];
            continue;
        }
        char name[NAME_SIZE];
        option_name(s, name);
        if (!value && s->kind == KIND_FLAG)
            value = "true";
        else if (!value && i + 1 == *argc)
            return log_failure("%s needs a value", name);
        else if (!value)
            value = argv[++i];
        if (!set(c, s, name, value))
            return false;
        url = url || s->offset == offsetof(struct config, database_url);
        data = data || s->offset == offsetof(struct config, data);
    }
    argv[remaining] = NULL;
    *argc = remaining;
    if (url && data)
        return log_failure("--database-url and --data exclude each other: give one of them");
    /* The command line overrides the environment, so --data also overrides DAYBOOK_DATABASE_URL. */
    if (data)
        c->database_url = "";
    return true;
}

bool config_read(struct config *c, int *argc, char **argv)
{
    set_defaults(c);
    return read_environment(c) && read_arguments(c, argc, argv);
}

void config_help(FILE *to)
{
    fputs("Settings, each also as an environment variable (--log-level is DAYBOOK_LOG_LEVEL):\n", to);
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char name[NAME_SIZE];
        const struct choice *c = find_choice(s->name);
        char words[WORDS_SIZE];
        fprintf(to, "  %-31s %s", option_name(s, name), s->help);
        if (c)
            fprintf(to, ": %s", choice_words(c, words));
        if (s->kind == KIND_NUMBER)
            fprintf(to, " (%" PRId64 "; %" PRId64 " to %" PRId64 ")", s->number, s->min, s->max);
        else if (s->kind == KIND_TEXT && s->text[0])
            fprintf(to, " (%s)", s->text);
        fputc('\n', to);
    }
}

/* The values column of config_table. */
static void print_values(FILE *to, const struct setting *s)
{
    const struct choice *c = find_choice(s->name);
    if (s->kind == KIND_NUMBER)
        fprintf(to, "%" PRId64 " to %" PRId64, s->min, s->max);
    else if (s->kind == KIND_FLAG)
        fputs("true or false", to);
    char words[WORDS_SIZE];
    if (c)
        fputs(choice_words(c, words), to);
}

static void print_default(FILE *to, const struct setting *s)
{
    if (s->kind == KIND_NUMBER)
        fprintf(to, "`%" PRId64 "`", s->number);
    else if (s->kind == KIND_FLAG)
        fputs("`false`", to);
    else if (s->text[0])
        fprintf(to, "`%s`", s->text);
}

void config_table(FILE *to)
{
    fputs("| option | environment variable | default | values | meaning |\n|---|---|---|---|---|\n", to);
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char option[NAME_SIZE], variable[NAME_SIZE];
        fprintf(to, "| `%s` | `%s` | ", option_name(s, option), environment_name(s, variable));
        print_default(to, s);
        fputs(" | ", to);
        print_values(to, s);
        fprintf(to, " | %s |\n", s->help);
    }
}

/* Reads the settings from the environment and the command line, and checks them against settings.def. */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/log.h"
#include "server/secret.h"

enum kind { KIND_TEXT, KIND_SECRET, KIND_NUMBER, KIND_FLAG };

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
#define SECRET(n, h)         { #n, KIND_SECRET, offsetof(struct config, n), "", 0, 0, 0, h },
#define NUMBER(n, fallback, low, high, h) \
    { #n, KIND_NUMBER, offsetof(struct config, n), NULL, fallback, low, high, h },
#define FLAG(n, h) { #n, KIND_FLAG, offsetof(struct config, n), NULL, 0, 0, 0, h },
#include "server/settings.def"
#undef TEXT
#undef SECRET
#undef NUMBER
#undef FLAG
};

enum { SETTINGS = sizeof settings / sizeof *settings, NAME_SIZE = 64, WORDS_SIZE = 128 };

/* How the value of a setting was given, by the index of the setting. */
struct given {
    bool here[SETTINGS], in_file[SETTINGS];
};

/* For config_warn. */
static struct {
    const char *path[SETTINGS];     /* the file of a secret */
    bool on_command_line[SETTINGS]; /* the secret itself */
} seen;

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

/* scheme://host[:port], as browsers send it, or * */
static bool check_origin(const char *where, const char *value)
{
    static const char in_host[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%[]:";
    static const char in_scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
    const size_t scheme = strspn(value, in_scheme);
    const char *host = value + scheme + 3;
    const bool valid =
        scheme && strncmp(value + scheme, "://", 3) == 0 && *host && strspn(host, in_host) == strlen(host);
    return valid || !value[0] || strcmp(value, "*") == 0 ||
           log_failure("%s must be an origin such as https://desk.example:8443, or *, not \"%s\"", where,
                       value);
}

/* Names without a port, separated by commas. */
static bool check_hosts(const char *where, const char *value)
{
    static const char in_name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
    for (const char *at = value + strspn(value, " ,"); *at; at += strspn(at, " ,")) {
        const size_t len = strcspn(at, " ,");
        const bool literal = *at == '[' && at[len - 1] == ']';
        if (!literal && strspn(at, in_name) < len && !(len == 1 && *at == '*'))
            return log_failure("%s: \"%.*s\" is not a host name (without scheme and port), or *", where,
                               (int)len, at);
        at += len;
    }
    return true;
}

/* Settings with a form of their own. */
static const struct form {
    size_t offset;
    bool (*check)(const char *where, const char *value);
} forms[] = {
    { offsetof(struct config, cors_origin), check_origin },
    { offsetof(struct config, allowed_hosts), check_hosts },
};

static bool set_text(const struct setting *s, void *to, const char *where, const char *value)
{
    const struct choice *c = find_choice(s->name);
    const char *const *word = c ? c->words : NULL;
    char words[WORDS_SIZE];
    while (c && *word && strcmp(*word, value) != 0)
        word++;
    if (c && !*word)
        return log_failure("%s must be %s, not \"%s\"", where, choice_words(c, words), value);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].offset == s->offset && !forms[i].check(where, value))
            return false;
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
    case KIND_SECRET:
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
        if (settings[i].kind == KIND_TEXT || settings[i].kind == KIND_SECRET)
            *(const char **)to = settings[i].text;
        else if (settings[i].kind == KIND_NUMBER)
            *(int64_t *)to = settings[i].number;
        else
            *(bool *)to = false;
    }
}

/* Sets a value of the environment or the command line, or the secret in the file that it names. */
static bool take(struct config *c, struct given *given, int i, bool file, const char *where,
                 const char *value)
{
    *(file ? &given->in_file[i] : &given->here[i]) = true;
    if (given->here[i] && given->in_file[i]) {
        const char *ending = where[0] == '-' ? "-file" : "_FILE";
        char value_name[NAME_SIZE];
        const char *name = where[0] == '-' ? option_name(&settings[i], value_name)
                                           : environment_name(&settings[i], value_name);
        return log_failure("%s and %s%s are both given: give one of them", name, name, ending);
    }
    seen.path[i] = file ? value : NULL;
    return (!file || secret_read(where, value, &value)) && set(c, &settings[i], where, value);
}

/* ---- the environment ---- */

/* An empty variable counts as unset: compose files pass unset variables as empty ones. */
static bool read_environment(struct config *c)
{
    struct given given = { 0 };
    for (int i = 0; i < SETTINGS; i++) {
        char name[NAME_SIZE + sizeof "_FILE"];
        const char *value = getenv(environment_name(&settings[i], name));
        if (value && *value && !take(c, &given, i, false, name, value))
            return false;
        if (settings[i].kind != KIND_SECRET)
            continue;
        value = getenv(strcat(name, "_FILE"));
        if (value && *value && !take(c, &given, i, true, name, value))
            return false;
    }
    return true;
}

/* ---- the command line ---- */

/* A URL without a password is no secret. */
static bool holds_secret(const struct setting *s, const char *value)
{
    if (s->kind != KIND_SECRET || s->offset != offsetof(struct config, database_url))
        return s->kind == KIND_SECRET;
    const char *user = strstr(value, "://");
    const char *at = user ? strchr(user + 3, '@') : NULL;
    return strstr(value, "password") || (at && memchr(user + 3, ':', (size_t)(at - user - 3)));
}

/* Overwrites a secret in the memory of the command line, and returns a copy. */
static const char *hide(int i, char *value)
{
    if (!holds_secret(&settings[i], value))
        return value;
    const char *copy = secret_copy(value);
    memset(value, '*', strlen(value));
    seen.on_command_line[i] = true;
    return copy;
}

/* Finds the setting of an option and its value after a `=`. Writes its name. Returns -1 for other words. */
static int find(char *word, char name[NAME_SIZE], bool *file, char **value)
{
    for (int i = 0; i < SETTINGS; i++) {
        size_t len = strlen(option_name(&settings[i], name));
        *file = settings[i].kind == KIND_SECRET && strncmp(word, name, len) == 0 &&
                strncmp(word + len, "-file", 5) == 0;
        if (*file)
            len = strlen(strcat(name, "-file"));
        if (strncmp(word, name, len) != 0 || (word[len] && word[len] != '='))
            continue;
        *value = word[len] ? word + len + 1 : NULL;
        return i;
    }
    return -1;
}

static bool read_arguments(struct config *c, int *argc, char **argv)
{
    struct given given = { 0 };
    bool url = false, data = false;
    int remaining = 1;
    for (int at = 1; at < *argc; at++) {
        char name[NAME_SIZE], *value;
        bool file;
        int i = find(argv[at], name, &file, &value);
        if (i < 0) {
            argv[remaining++] = argv[at];
            continue;
        }
        const struct setting *s = &settings[i];
        if (!value && s->kind != KIND_FLAG && at + 1 == *argc)
            return log_failure("%s needs a value", name);
        if (!value && s->kind != KIND_FLAG)
            value = argv[++at];
        if (!take(c, &given, i, file, name, !value ? "true" : file ? value : hide(i, value)))
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

/* ---- reading and printing ---- */

bool config_read(struct config *c, int *argc, char **argv)
{
    set_defaults(c);
    return read_environment(c) && read_arguments(c, argc, argv);
}

void config_warn(void)
{
    for (int i = 0; i < SETTINGS; i++) {
        char name[NAME_SIZE];
        if (seen.path[i])
            secret_check_mode(seen.path[i]);
        if (seen.on_command_line[i])
            log_event(
                LOG_WARN, "secret_on_command_line",
                "option=%s reason=\"others could read it until the start: use a file or the environment\"",
                option_name(&settings[i], name));
    }
}

/* ` OPTION VALUE`, in quotes if the shell would change the value. */
static void print_option(char *out, size_t size, const char *option, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/:@,+=%";
    const char *quote = strspn(value, plain) == strlen(value) ? "" : "'";
    snprintf(out, size, " %s %s%s%s", option, quote, value, quote);
}

const char *config_database_option(const struct config *c, char *out, size_t size)
{
    const struct setting *s = settings;
    while (s->offset != offsetof(struct config, database_url))
        s++;
    const char *url = c->database_url;
    out[0] = 0;
    if (!url[0]) {
        if (c->data[0])
            print_option(out, size, "--data", c->data);
        return out;
    }
    const char *scheme = strstr(url, "://");
    const char *at = scheme ? strchr(scheme, '@') : NULL;
    const char *colon = at ? memchr(scheme + 3, ':', (size_t)(at - scheme - 3)) : NULL;
    char text[512];
    if (seen.path[s - settings])
        print_option(out, size, "--database-url-file", seen.path[s - settings]);
    else if (strstr(url, "password") || strlen(url) >= sizeof text || (at && strchr(at + 1, '@')))
        print_option(out, size, "--database-url", "URL");
    else {
        snprintf(text, sizeof text, "%.*s%s", colon ? (int)(colon - url) : (int)strlen(url), url,
                 colon ? at : "");
        print_option(out, size, "--database-url", text);
    }
    return out;
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
        else if (s->kind == KIND_SECRET)
            fprintf(to, " (or %s-file FILE)", name);
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
    else if (s->kind == KIND_TEXT && s->text[0])
        fprintf(to, "`%s`", s->text);
}

void config_table(FILE *to)
{
    fputs("| option | environment variable | default | values | meaning |\n|---|---|---|---|---|\n", to);
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char option[NAME_SIZE], variable[NAME_SIZE];
        option_name(s, option);
        environment_name(s, variable);
        if (s->kind == KIND_SECRET)
            fprintf(to, "| `%s`, `%s-file` | `%s`, `%s_FILE` | ", option, option, variable, variable);
        else
            fprintf(to, "| `%s` | `%s` | ", option, variable);
        print_default(to, s);
        fputs(" | ", to);
        print_values(to, s);
        fprintf(to, " | %s |\n", s->help);
    }
}

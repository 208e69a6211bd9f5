/* The commands of daybookd. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commit.gen.h"
#include "db/admin.h"
#include "db/statement_print.h"
#include "server/config.h"
#include "server/dispatch/query.h"
#include "server/embedded_pg/embedded_pg.h"
#include "server/fields_print.h"
#include "server/health_probe.h"
#include "server/log.h"
#include "server/remote/remote_check.h"
#include "server/serve.h"

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The rest of the command line after the settings were removed. */
struct words {
    int count;
    char **list;
};

struct command {
    const char *name, *usage, *help;
    enum exit_code (*run)(const struct config *config, struct words *words);
};

/* SCHED_BATCH: a woken thread does not preempt the running one, so each wake-up finds more requests and
 * replies to handle together. The private PostgreSQL inherits it. Best effort. */
static void prefer_throughput(void)
{
    struct sched_param none = { 0 };
    sched_setscheduler(0, SCHED_BATCH, &none);
}

static enum exit_code command_serve(const struct config *config, struct words *words);
static enum exit_code command_migrate(const struct config *config, struct words *words);
static enum exit_code command_key(const struct config *config, struct words *words);
static enum exit_code command_health(const struct config *config, struct words *words);
static enum exit_code command_routes(const struct config *config, struct words *words);
static enum exit_code command_fields(const struct config *config, struct words *words);
static enum exit_code command_settings(const struct config *config, struct words *words);
static enum exit_code command_sql(const struct config *config, struct words *words);

static const struct command commands[] = {
    { "serve", "daybookd serve [--listen ADDR:PORT] [--database-url URL | --data DIR] [SETTING...]",
      "Migrates the database and serves until SIGTERM or SIGINT. Without --database-url it runs a private "
      "PostgreSQL in\n"
      "--data, which is daybook in the user's data directory (as root: /var/lib/daybook).\n",
      command_serve },
    { "migrate", "daybookd migrate [--database-url URL | --data DIR]",
      "Applies the migrations that the database does not have yet.\n", command_migrate },
    { "key",
      "daybookd key create --owner NAME --role ROLE [--name LABEL] [--expires DATE|DURATION]\n"
      "                    [--rate N [--burst M]] [--database-url URL | --data DIR]\n"
      "       daybookd key rotate ID [--overlap DURATION] [--expires DATE|DURATION] [--database-url URL | "
      "--data "
      "DIR]\n"
      "       daybookd key list [--database-url URL | --data DIR]\n"
      "       daybookd key revoke ID [--database-url URL | --data DIR]",
      "Manages the keys of the API. `create` prints the token, which is shown only once. ROLE is reader "
      "(reads), researcher\n"
      "(also proposes lessons and stores research), agent (also writes everything else) or admin. The first "
      "key closes the\n"
      "service to callers without one.\n"
      "--expires is when the key stops working: 2027-01-31, 2027-01-31T09:00:00Z, or 90d, 12h, 30m from now. "
      "--rate is the\n"
      "requests a second that it may send, and --burst how many at once after a pause (default: as --rate).\n"
      "`rotate` prints the token of a new key with the same owner, role, name, limits and lifetime. The old "
      "key "
      "stops working\n"
      "within a second, or after --overlap.\n",
      command_key },
    { "health", "daybookd health [--listen ADDR:PORT] [--tls-cert FILE]",
      "Exits with 0 when the service on that address is ready. With --tls-cert it asks over TLS, without "
      "verifying the\n"
      "certificate.\n",
      command_health },
    { "routes", "daybookd routes", "Prints the method and path of every route.\n", command_routes },
    { "fields", "daybookd fields",
      "Prints the role of every route and the limits of every field it takes, separated by tabs.\n",
      command_fields },
    { "settings", "daybookd settings", "Prints every setting as a table in Markdown.\n", command_settings },
    { "sql", "daybookd sql NAME\n       daybookd sql --list",
      "Prints a statement as it is sent to PostgreSQL. NAME_together is its form for several requests at "
      "once, "
      "which the\n"
      "statements have that read one row. --list prints the name, lane, shape and parameters of every "
      "statement.\n",
      command_sql },
};

enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- words ---- */

static enum exit_code usage_error(const char *command, const char *problem, const char *word)
{
    log_failure("%s%s%s (see daybookd%s%s --help)", problem, word ? " " : "", word ? word : "",
                command ? " " : "", command ? command : "");
    return EXIT_USAGE;
}

static void drop(struct words *words, int at, int count)
{
    words->count -= count;
    memmove(words->list + at, words->list + at + count, (size_t)(words->count - at) * sizeof *words->list);
}

/* Takes `--name value` or `--name=value` out of the words. False when the value is missing. */
static bool take_option(struct words *words, const char *name, const char **value)
{
    size_t len = strlen(name);
    for (int i = 0; i < words->count; i++) {
        const char *word = words->list[i];
        if (strncmp(word, name, len) != 0 || (word[len] && word[len] != '='))
            continue;
        if (!word[len] && i + 1 == words->count)
            return false;
        *value = word[len] ? word + len + 1 : words->list[i + 1];
        drop(words, i, word[len] ? 1 : 2);
        i--;
    }
    return true;
}

/* Leftover words are a usage error. */
static enum exit_code expect_no_more_words(const char *command, const struct words *words)
{
    if (!words->count)
        return EXIT_OK;
    return usage_error(command, words->list[0][0] == '-' ? "unknown option" : "unexpected word",
                       words->list[0]);
}

/* ---- commands ---- */

/* max_connections of the private PostgreSQL: all connections of all loops, and some for psql. */
static int connections_needed(const struct config *config)
{
    return serve_loop_count(config) * (int)(config->write_connections + config->slow_connections + 4) + 20;
}

/* Signals that arrive before serve() waits for them stay pending: SIGHUP because it means a reload, not the
 * end, and as PID 1 the others too, because the kernel discards signals that PID 1 does not handle. */
static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    if (getpid() == 1) {
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Applies the missing migrations, and checks the queries against the result. */
static bool prepare_database(const struct config *config, const char *url, bool *has_keys)
{
    struct arena arena = { 0 };
    const struct described *described;
    const int64_t begin = loop_wall_us();
    bool ok = admin_migrate_and_describe(url, config->start_timeout_ms, has_keys, &arena, &described) &&
              query_check_all(described);
    arena_release(&arena);
    if (ok)
        log_event(LOG_DEBUG, "queries_checked", "queries=%d us=%lld", query_count(),
                  (long long)(loop_wall_us() - begin));
    return ok;
}

/* What may happen to the private cluster. */
enum use { SERVE, JOIN_OR_CREATE, JOIN };

/* Starts or joins the private cluster, unless another database is given, and creates its extensions. */
static bool open_database(const struct config *config, enum use use, const char **url)
{
    *url = config->database_url;
    if (*url[0])
        return true;
    bool open = use == SERVE ? embedded_pg_start(config->data, connections_needed(config), url)
                             : embedded_pg_join(config->data, use == JOIN_OR_CREATE, url);
    return open && admin_extensions(embedded_pg_admin_url(), config->start_timeout_ms);
}

static enum exit_code command_serve(const struct config *config, struct words *words)
{
    enum exit_code bad = expect_no_more_words("serve", words);
    const char *url;
    bool has_keys = false;
    if (bad)
        return bad;
    if (!remote_check(config) || !serve_check(config))
        return EXIT_FAILED;
    config_warn();
    block_signals();
    prefer_throughput();
    signal(SIGPIPE, SIG_IGN); /* a closed log pipe must not end the service */
    int code = EXIT_FAILED;
    if (open_database(config, SERVE, &url) && prepare_database(config, url, &has_keys))
        code = serve(config, url, has_keys);
    embedded_pg_stop();
    return code == 0 ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code command_migrate(const struct config *config, struct words *words)
{
    enum exit_code bad = expect_no_more_words("migrate", words);
    const char *url;
    if (bad)
        return bad;
    bool ok = open_database(config, JOIN_OR_CREATE, &url) && admin_migrate(url, NULL);
    embedded_pg_stop();
    return ok ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code key_create(const struct config *config, struct words *words)
{
    struct admin_key key = { 0 };
    const char *url;
    if (!take_option(words, "--owner", &key.owner) || !take_option(words, "--role", &key.role) ||
        !take_option(words, "--name", &key.name) || !take_option(words, "--expires", &key.expires) ||
        !take_option(words, "--rate", &key.rate) || !take_option(words, "--burst", &key.burst))
        return usage_error("key", "--owner, --role, --name, --expires, --rate and --burst need a value",
                           NULL);
    enum exit_code bad = expect_no_more_words("key", words);
    if (bad)
        return bad;
    if (!key.owner || !key.role)
        return usage_error("key", "key create needs --owner and --role", NULL);
    if (key.burst && !key.rate)
        return usage_error("key", "--burst needs --rate", NULL);
    bool ok = open_database(config, JOIN, &url) && admin_migrate(url, NULL) && admin_key_create(url, &key);
    embedded_pg_stop();
    return ok ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code key_list(const struct config *config, struct words *words)
{
    enum exit_code bad = expect_no_more_words("key", words);
    const char *url;
    if (bad)
        return bad;
    bool ok = open_database(config, JOIN, &url) && admin_key_list(url);
    embedded_pg_stop();
    return ok ? EXIT_OK : EXIT_FAILED;
}

/* The word that must come first; NULL: it is missing. */
static const char *take_id(struct words *words)
{
    if (!words->count || words->list[0][0] == '-')
        return NULL;
    const char *id = words->list[0];
    drop(words, 0, 1);
    return id;
}

static enum exit_code key_rotate(const struct config *config, struct words *words)
{
    const char *id = take_id(words), *overlap = NULL, *expires = NULL, *url;
    if (!id)
        return usage_error("key", "key rotate needs the id of a key", NULL);
    if (!take_option(words, "--overlap", &overlap) || !take_option(words, "--expires", &expires))
        return usage_error("key", "--overlap and --expires need a value", NULL);
    enum exit_code bad = expect_no_more_words("key", words);
    if (bad)
        return bad;
    bool ok = open_database(config, JOIN, &url) && admin_migrate(url, NULL) &&
              admin_key_rotate(url, id, overlap, expires);
    embedded_pg_stop();
    return ok ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code key_revoke(const struct config *config, struct words *words)
{
    const char *id = take_id(words), *url;
    if (!id)
        return usage_error("key", "key revoke needs the id of a key", NULL);
    enum exit_code bad = expect_no_more_words("key", words);
    if (bad)
        return bad;
    bool ok = open_database(config, JOIN, &url) && admin_key_revoke(url, id);
    embedded_pg_stop();
    return ok ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code command_key(const struct config *config, struct words *words)
{
    static const struct {
        const char *name;
        enum exit_code (*run)(const struct config *config, struct words *words);
    } actions[] = {
        { "create", key_create }, { "rotate", key_rotate }, { "list", key_list }, { "revoke", key_revoke }
    };
    for (size_t i = 0; words->count && i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(words->list[0], actions[i].name) == 0) {
            drop(words, 0, 1);
            return actions[i].run(config, words);
        }
    }
    return usage_error("key", "key needs create, rotate, list or revoke", NULL);
}

static enum exit_code command_health(const struct config *config, struct words *words)
{
    enum exit_code bad = expect_no_more_words("health", words);
    if (bad)
        return bad;
    return health_probe(config->listen, config->tls_cert[0]) ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code command_routes(const struct config *config, struct words *words)
{
    (void)config;
    enum exit_code bad = expect_no_more_words("routes", words);
    if (!bad)
        serve_print_routes();
    return bad;
}

static enum exit_code command_fields(const struct config *config, struct words *words)
{
    (void)config;
    enum exit_code bad = expect_no_more_words("fields", words);
    if (!bad)
        fields_print(stdout);
    return bad;
}

static enum exit_code command_settings(const struct config *config, struct words *words)
{
    (void)config;
    enum exit_code bad = expect_no_more_words("settings", words);
    if (!bad)
        config_table(stdout);
    return bad;
}

static enum exit_code command_sql(const struct config *config, struct words *words)
{
    (void)config;
    if (!words->count)
        return usage_error("sql", "sql needs the name of a statement or --list", NULL);
    const char *name = words->list[0];
    drop(words, 0, 1);
    enum exit_code bad = expect_no_more_words("sql", words);
    if (bad)
        return bad;
    if (strcmp(name, "--list") == 0)
        statement_print_list(stdout);
    else if (name[0] == '-')
        return usage_error("sql", "unknown option", name);
    else if (!statement_print(stdout, name)) {
        log_failure("there is no statement %s (see daybookd sql --list)", name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* ---- main ---- */

static void print_usage(FILE *to)
{
    fputs("Daybook: the memory of trading and finance-research agents, over HTTP.\n\nusage:\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "       %s\n", commands[i].usage);
    fputs("       daybookd [COMMAND] --help\n       daybookd --version\n", to);
}

static void print_help(const struct command *c)
{
    if (c)
        printf("usage: %s\n\n%s", c->usage, c->help);
    else
        print_usage(stdout);
    if (!c || c->run == command_serve) {
        putchar('\n');
        config_help(stdout);
    }
}

/* Removes the flag from the words. Returns whether it was present. */
static bool take_flag(struct words *words, const char *name)
{
    bool found = false;
    for (int i = words->count - 1; i >= 0; i--) {
        if (strcmp(words->list[i], name) == 0) {
            drop(words, i, 1);
            found = true;
        }
    }
    return found;
}

static const struct command *find_command(struct words *words)
{
    for (int i = 0; words->count && i < COMMANDS; i++) {
        if (strcmp(words->list[0], commands[i].name) == 0) {
            drop(words, 0, 1);
            return &commands[i];
        }
    }
    return NULL;
}

static enum exit_code run_command(const struct config *config, struct words *words)
{
    bool help = take_flag(words, "--help") || take_flag(words, "-h");
    const struct command *c = find_command(words);
    if (help) {
        print_help(c);
        return EXIT_OK;
    }
    if (!c && words->count)
        return usage_error(NULL, words->list[0][0] == '-' ? "unknown option" : "unknown command",
                           words->list[0]);
    if (!c) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    log_setup(config->log_level, config->log_format);
    return c->run(config, words);
}

/* If the caller closed stdin, stdout or stderr, none of our files or sockets may get its number. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    struct config config;
    open_standard_files();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("daybookd %s (%s)\n", DAYBOOK_VERSION, DAYBOOK_COMMIT);
        return EXIT_OK;
    }
    if (!config_read(&config, &argc, argv))
        return EXIT_USAGE;
    struct words words = { .count = argc - 1, .list = argv + 1 };
    enum exit_code code = run_command(&config, &words);
    if (fflush(stdout) != 0 && code == EXIT_OK)
        code = EXIT_FAILED;
    return (int)code;
}

/* The settings, from one table: command line over environment over default. */
#ifndef DAYBOOK_SERVER_CONFIG_H
#define DAYBOOK_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct config {
#define TEXT(name, fallback, help)             const char *name;
#define SECRET(name, help)                     const char *name;
#define NUMBER(name, fallback, min, max, help) int64_t name;
#define FLAG(name, help)                       bool name;
#include "server/settings.def"
#undef TEXT
#undef SECRET
#undef NUMBER
#undef FLAG
};

/* Reads the environment, then the arguments. Removes the settings from argv, so that argv[1..] holds the
 * remaining words. Overwrites the memory of secrets in argv, because other users can read command lines.
 * False: one line about the first invalid setting was printed on stderr. */
bool config_read(struct config *c, int *argc, char **argv);
/* Logs a warning for each secret that other users can or could read. */
void config_warn(void);
/* The option that names the same database, with a space before it; a password is left out. "": the default
 * folder. Returns `out`. */
const char *config_database_option(const struct config *c, char *out, size_t size);
/* The table of settings, for --help. */
void config_help(FILE *to);
/* The same as a Markdown table, for docs/configuration.md. */
void config_table(FILE *to);

#endif

/* Administration of the database over a plain blocking connection: checks, migrations and API keys. */
#ifndef DAYBOOK_DB_ADMIN_H
#define DAYBOOK_DB_ADMIN_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "db/describe.h"

/* On failure each function prints one line on stderr and returns false. */

/* Connects, checks the server version, pgvector and the privileges of the role, then applies the missing
 * migrations and logs each one. Safe when several services start at once. *has_keys (may be NULL) is set to
 * whether an API key was ever created. */
bool admin_migrate(const char *database_url, bool *has_keys);

/* The same, then prepares every statement without running it. *described has one item per statement, by its
 * index. False also if PostgreSQL rejects a statement, or a function that makes rows for one does not fit its
 * table. It is one function because it needs one connection: a backend takes milliseconds to start. */
bool admin_migrate_and_describe(const char *database_url, bool *has_keys, struct arena *arena,
                                const struct described **described);

/* Prints only the token on stdout and everything else on stderr. `name` may be NULL. */
bool admin_key_create(const char *database_url, const char *owner, const char *role, const char *name);
bool admin_key_list(const char *database_url);
bool admin_key_revoke(const char *database_url, const char *id);

#endif

/* What is done to the database before and beside serving, with a plain blocking connection: checks,
 * migrations, keys. */
#ifndef DAYBOOK_DB_ADMIN_H
#define DAYBOOK_DB_ADMIN_H

#include <stdbool.h>

/* Each of these prints one clear line on stderr and returns false when it fails. */

/* Connects, checks that the server is new enough, has pgvector and that the role may migrate, then applies
 * what is missing. Safe when several services start at once. Says on the log which migrations ran. *has_keys
 * (may be NULL): whether a key of the API was ever created. */
bool admin_migrate(const char *database_url, bool *has_keys);

/* Prints the token alone on stdout, and the rest on stderr. `name` may be NULL. */
bool admin_key_create(const char *database_url, const char *owner, const char *role, const char *name);
bool admin_key_list(const char *database_url);
bool admin_key_revoke(const char *database_url, const char *id);

#endif

/* Administration of the database over a plain blocking connection: checks, migrations and API keys. */
#ifndef DAYBOOK_DB_ADMIN_H
#define DAYBOOK_DB_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "db/describe.h"

/* On failure each function prints one line on stderr and returns false. Each waits for a server that is still
 * starting. */

/* Creates the extensions as a superuser, for a service whose role is none. Waits like
 * admin_migrate_and_describe. */
bool admin_extensions(const char *admin_url, int64_t wait_ms);

/* Connects, checks the server version, pgvector and the privileges of the role, then applies the missing
 * migrations and logs each one. Safe when several services start at once. *has_keys (may be NULL) is set to
 * whether an API key was ever created. */
bool admin_migrate(const char *database_url, bool *has_keys);

/* The same, then prepares every statement without running it. Waits up to `wait_ms` for a server that accepts
 * connections and takes writes, and logs why. *described has one item per statement, by its
 * index. False also if PostgreSQL rejects a statement, or a function that makes rows for one does not fit its
 * table. It is one function because it needs one connection: a backend takes milliseconds to start. */
bool admin_migrate_and_describe(const char *database_url, int64_t wait_ms, bool *has_keys,
                                struct arena *arena, const struct described **described);

/* A new key as the command line describes it. NULL: no name, no expiry, no limit; `burst` alone: as many as
 * `rate`. */
struct admin_key {
    const char *owner, *role, *name;
    const char *expires; /* "2027-01-31", "2027-01-31T09:00:00Z" or "90d" */
    const char *rate, *burst;
};

/* Prints only the token on stdout and everything else on stderr. */
bool admin_key_create(const char *database_url, const struct admin_key *key);
/* The same for a key that replaces another: with its owner, role, name and limits, and, if `expires` is NULL,
 * with its lifetime, counted from now. The old key works for `overlap` ("1h"; NULL: not at all). */
bool admin_key_rotate(const char *database_url, const char *id, const char *overlap, const char *expires);
bool admin_key_list(const char *database_url);
bool admin_key_revoke(const char *database_url, const char *id);

#endif

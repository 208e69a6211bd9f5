/* The in-memory API keys of a loop. */
#ifndef DAYBOOK_DB_KEYS_H
#define DAYBOOK_DB_KEYS_H

#include <stdbool.h>

#include "server/problem.h"
#include "server/role.h"

struct db;

struct key {
    char hash[65]; /* SHA-256 of the token */
    char owner[65];
    enum role role;
};

struct key_set {
    bool any;  /* a key was ever created, even if revoked since */
    int count; /* valid keys, sorted by hash */
    struct key keys[];
};

/* Reads all keys without waiting. `done` owns the set and frees it with free(). */
void keys_load(struct db *db, void (*done)(void *user, struct key_set *keys, enum err err), void *user);
const struct key *keys_find(const struct key_set *set, const char *hash);

#endif

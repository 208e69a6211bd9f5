/* The API keys, as a loop keeps them in memory. */
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
    bool any;  /* a key was ever made, revoked ones included */
    int count; /* of those that are good, in the order of their hashes */
    struct key keys[];
};

/* Reads all keys without waiting; `done` owns the set (free). */
void keys_load(struct db *db, void (*done)(void *user, struct key_set *keys, enum err err), void *user);
const struct key *key_find(const struct key_set *set, const char *hash);

#endif

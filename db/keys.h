/* Reads API keys without waiting. */
#ifndef DAYBOOK_DB_KEYS_H
#define DAYBOOK_DB_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/sha256.h"
#include "core/base/uuid.h"
#include "server/problem.h"
#include "server/role.h"

struct db;

#define KEY_NEVER_US INT64_MAX

struct key {
    unsigned char hash[SHA256_BYTES]; /* SHA-256 of the token */
    char id[UUID_SIZE];
    char owner[65];
    enum role role;
    bool revoked;
    int64_t expires_us; /* since 1970; KEY_NEVER_US: never */
    int rate, burst;    /* requests a second, and at once; 0: no limit */
};

/* A read. The caller embeds it, and keeps it until `done` was called, which may be before keys_* returns. */
struct keys_read {
    void (*done)(struct keys_read *r, enum err err);
    struct key *keys; /* valid during `done` */
    int count;
    /* keys_find: whether any key exists */
    bool any;
    /* keys_refresh: how many of the keys are the page of the walk, and the last of these in the order of
     * hashes */
    int paged;
    const struct key *last;
    /* for db/keys.c */
    char texts[3][SHA256_HEX_SIZE];
    const char *values[3];
};

/* The keys that changed within the last `seconds`, and at most `page` keys with a hash above `after` (NULL:
 * from the start), in order. */
void keys_refresh(struct db *db, struct keys_read *r, int64_t seconds, const unsigned char *after, int page);
/* The key with this hash, if it exists. Reads that arrive together are one statement. */
void keys_find(struct db *db, struct keys_read *r, const unsigned char *hash);

#endif

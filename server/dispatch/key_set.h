/* The API keys that a loop holds in memory, by hash. */
#ifndef DAYBOOK_SERVER_DISPATCH_KEY_SET_H
#define DAYBOOK_SERVER_DISPATCH_KEY_SET_H

#include <stddef.h>

#include "db/keys.h"

struct key_bucket;

struct known_key {
    struct key key;
    struct key_bucket *bucket; /* NULL: it has no rate */
    unsigned walk;             /* the walk over the table that saw it last */
};

struct key_set {
    struct known_key **slots; /* open addressing; at most half of them are used */
    size_t size, count;
};

/* The result is valid until the loop waits. */
const struct known_key *key_set_find(const struct key_set *s, const unsigned char *hash);
/* Adds the key, or replaces what is known of it. */
void key_set_put(struct key_set *s, const struct key *key, unsigned walk);
/* A walk over the whole table ended: keys that it did not see were deleted, and count as revoked. */
void key_set_walked(struct key_set *s, unsigned walk);
void key_set_free(struct key_set *s);

#endif

/* The API keys that a loop holds in memory, by hash. */
#include "server/dispatch/key_set.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "server/dispatch/key_bucket.h"

enum { FIRST_SIZE = 64 };

/* The slot of the hash, or the empty one where it belongs. SHA-256 spreads by itself. */
static struct known_key **slot_of(const struct key_set *s, const unsigned char *hash)
{
    uint64_t start;
    memcpy(&start, hash, sizeof start);
    size_t at = (size_t)start & (s->size - 1);
    while (s->slots[at] && memcmp(s->slots[at]->key.hash, hash, SHA256_BYTES) != 0)
        at = (at + 1) & (s->size - 1);
    return &s->slots[at];
}

const struct known_key *key_set_find(const struct key_set *s, const unsigned char *hash)
{
    return s->size ? *slot_of(s, hash) : NULL;
}

static void grow(struct key_set *s)
{
    struct key_set larger = { .size = s->size ? 2 * s->size : FIRST_SIZE, .count = s->count };
    larger.slots = memory_zero(larger.size, sizeof(struct known_key *));
    for (size_t i = 0; i < s->size; i++)
        if (s->slots[i])
            *slot_of(&larger, s->slots[i]->key.hash) = s->slots[i];
    free(s->slots);
    *s = larger;
}

void key_set_put(struct key_set *s, const struct key *key, unsigned walk)
{
    if (2 * (s->count + 1) > s->size)
        grow(s);
    struct known_key **slot = slot_of(s, key->hash);
    if (!*slot) {
        *slot = memory_zero(1, sizeof **slot);
        s->count++;
    }
    struct known_key *k = *slot;
    k->key = *key;
    k->walk = walk;
    if (key->rate && !k->bucket)
        k->bucket = key_bucket_open(key->hash);
    if (!key->rate && k->bucket) {
        key_bucket_close(k->bucket);
        k->bucket = NULL;
    }
}

void key_set_walked(struct key_set *s, unsigned walk)
{
    for (size_t i = 0; i < s->size; i++)
        if (s->slots[i] && s->slots[i]->walk != walk)
            s->slots[i]->key.revoked = true;
}

void key_set_free(struct key_set *s)
{
    for (size_t i = 0; i < s->size; i++) {
        if (s->slots[i] && s->slots[i]->bucket)
            key_bucket_close(s->slots[i]->bucket);
        free(s->slots[i]);
    }
    free(s->slots);
    *s = (struct key_set){ 0 };
}

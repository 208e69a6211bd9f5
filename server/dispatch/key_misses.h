/* Hashes for which the database had no key a moment ago. */
#ifndef DAYBOOK_SERVER_DISPATCH_KEY_MISSES_H
#define DAYBOOK_SERVER_DISPATCH_KEY_MISSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/sha256.h"

/* A hash is kept for KEY_MISSES_US, unless others need the room: it shares KEY_MISSES_WAYS places with the
 * hashes of its row. */
enum { KEY_MISSES_US = 1000 * 1000, KEY_MISSES_ROWS = 1024, KEY_MISSES_WAYS = 4 };

struct key_misses {
    struct key_miss {
        unsigned char hash[SHA256_BYTES];
        int64_t until_us; /* 0: empty */
    } rows[KEY_MISSES_ROWS][KEY_MISSES_WAYS];
};

bool key_misses_has(const struct key_misses *m, const unsigned char *hash, int64_t now_us);
void key_misses_add(struct key_misses *m, const unsigned char *hash, int64_t now_us);

#endif

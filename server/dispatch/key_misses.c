/* Hashes for which the database had no key a moment ago. */
#include "server/dispatch/key_misses.h"

#include <string.h>

static int row_of(const unsigned char *hash)
{
    return (hash[0] | hash[1] << 8) % KEY_MISSES_ROWS;
}

bool key_misses_has(const struct key_misses *m, const unsigned char *hash, int64_t now_us)
{
    const struct key_miss *row = m->rows[row_of(hash)];
    for (int i = 0; i < KEY_MISSES_WAYS; i++)
        if (row[i].until_us > now_us && memcmp(row[i].hash, hash, SHA256_BYTES) == 0)
            return true;
    return false;
}

/* Replaces the oldest. */
void key_misses_add(struct key_misses *m, const unsigned char *hash, int64_t now_us)
{
    struct key_miss *row = m->rows[row_of(hash)], *oldest = row;
    for (int i = 1; i < KEY_MISSES_WAYS; i++)
        if (row[i].until_us < oldest->until_us)
            oldest = &row[i];
    memcpy(oldest->hash, hash, SHA256_BYTES);
    oldest->until_us = now_us + KEY_MISSES_US;
}

/* The rate of a key, over all loops. */
#ifndef DAYBOOK_SERVER_DISPATCH_KEY_BUCKET_H
#define DAYBOOK_SERVER_DISPATCH_KEY_BUCKET_H

#include <stdint.h>

struct key_bucket;

/* The bucket of the key with this hash: one for all loops. Each open needs a close. */
struct key_bucket *key_bucket_open(const unsigned char *hash);
void key_bucket_close(struct key_bucket *b);

/* Takes a request. Returns 0, or the time until one is allowed. Takes no lock. */
int64_t key_bucket_take(struct key_bucket *b, int rate, int burst, int64_t now_ns);

#endif

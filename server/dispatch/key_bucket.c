/* The rate of a key, over all loops. */
#include "server/dispatch/key_bucket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/rate.h"
#include "core/base/sha256.h"

enum { LISTS = 1024 };

#define NS_PER_S INT64_C(1000000000)

struct key_bucket {
    struct key_bucket *next;
    unsigned char hash[SHA256_BYTES];
    int opened;
    _Atomic int64_t full_ns; /* see core/base/rate.h */
};

/* Taken when a loop learns of a key that has a rate, never by a request. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct key_bucket *lists[LISTS];

static struct key_bucket **find_slot(const unsigned char *hash)
{
    struct key_bucket **slot = &lists[(hash[0] | hash[1] << 8) % LISTS];
    while (*slot && memcmp((*slot)->hash, hash, SHA256_BYTES) != 0)
        slot = &(*slot)->next;
    return slot;
}

struct key_bucket *key_bucket_open(const unsigned char *hash)
{
    pthread_mutex_lock(&mutex);
    struct key_bucket **slot = find_slot(hash);
    if (!*slot) {
        *slot = memory_zero(1, sizeof **slot);
        memcpy((*slot)->hash, hash, SHA256_BYTES);
    }
    struct key_bucket *b = *slot;
    b->opened++;
    pthread_mutex_unlock(&mutex);
    return b;
}

void key_bucket_close(struct key_bucket *b)
{
    pthread_mutex_lock(&mutex);
    if (--b->opened == 0) {
        *find_slot(b->hash) = b->next;
        free(b);
    }
    pthread_mutex_unlock(&mutex);
}

int64_t key_bucket_take(struct key_bucket *b, int rate, int burst, int64_t now_ns)
{
    const struct rate r = rate_of(rate, NS_PER_S, burst);
    int64_t full = atomic_load_explicit(&b->full_ns, memory_order_relaxed), next, wait;
    do {
        next = rate_take(r, full, now_ns, &wait);
    } while (!wait && !atomic_compare_exchange_weak_explicit(&b->full_ns, &full, next, memory_order_relaxed,
                                                             memory_order_relaxed));
    return wait;
}

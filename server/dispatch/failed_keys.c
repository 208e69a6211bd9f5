/* Requests without a valid key, per client address and over all loops. */
#include "server/dispatch/failed_keys.h"

#include <pthread.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/rate.h"

enum { ROWS = 1024, WAYS = 4, NETWORK_BYTES = 8, LINES_A_SECOND = 10, LINES_AT_ONCE = 100 };

#define NS_PER_S  INT64_C(1000000000)
#define WINDOW_NS (600 * NS_PER_S)

struct failures {
    struct address network;
    int64_t full_ns;  /* of the failures that it may have: see core/base/rate.h */
    int64_t begin_ns; /* of the window; 0: empty */
    int64_t count;    /* rejections within the window */
    int64_t last_ns;
};

/* Taken by requests without a valid key alone. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct failures table[ROWS][WAYS];
static int64_t lines_full_ns;

static struct address network_of(const struct address *a)
{
    static const unsigned char mapped_v4[12] = { [10] = 0xff, [11] = 0xff };
    struct address n = *a;
    if (memcmp(n.bytes, mapped_v4, sizeof mapped_v4) != 0)
        memset(n.bytes + NETWORK_BYTES, 0, ADDRESS_BYTES - NETWORK_BYTES);
    return n;
}

/* The entry of the address; a new one takes the place of the one that is unused for longest. */
static struct failures *entry(const struct address *a, int64_t now_ns)
{
    const struct address network = network_of(a);
    struct failures *row = table[hash_bytes(network.bytes, ADDRESS_BYTES, HASH_SEED) % ROWS], *oldest = row;
    for (int i = 0; i < WAYS; i++) {
        if (row[i].begin_ns && memcmp(row[i].network.bytes, network.bytes, ADDRESS_BYTES) == 0) {
            row[i].last_ns = now_ns;
            return &row[i];
        }
        if (row[i].last_ns < oldest->last_ns)
            oldest = &row[i];
    }
    *oldest = (struct failures){ .network = network, .begin_ns = now_ns, .last_ns = now_ns };
    return oldest;
}

static struct rate allowance(int64_t per_minute)
{
    return rate_of(per_minute, 60 * NS_PER_S, per_minute);
}

int64_t failed_keys_take(const struct address *a, int64_t per_minute, int64_t now_ns)
{
    int64_t wait;
    pthread_mutex_lock(&mutex);
    struct failures *f = entry(a, now_ns);
    f->full_ns = rate_take(allowance(per_minute), f->full_ns, now_ns, &wait);
    pthread_mutex_unlock(&mutex);
    return wait;
}

void failed_keys_return(const struct address *a, int64_t per_minute, int64_t now_ns)
{
    pthread_mutex_lock(&mutex);
    struct failures *f = entry(a, now_ns);
    f->full_ns -= allowance(per_minute).interval_ns;
    pthread_mutex_unlock(&mutex);
}

int64_t failed_keys_count(const struct address *a, int64_t now_ns)
{
    int64_t wait = 1;
    pthread_mutex_lock(&mutex);
    struct failures *f = entry(a, now_ns);
    if (now_ns - f->begin_ns >= WINDOW_NS) {
        f->begin_ns = now_ns;
        f->count = 0;
    }
    const int64_t count = ++f->count;
    if ((count & (count - 1)) == 0)
        lines_full_ns =
            rate_take(rate_of(LINES_A_SECOND, NS_PER_S, LINES_AT_ONCE), lines_full_ns, now_ns, &wait);
    pthread_mutex_unlock(&mutex);
    return wait ? 0 : count;
}

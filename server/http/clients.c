/* Counts open connections, in total and per client address, over all loops. */
#include "server/http/clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

enum { BUCKETS = 4096 };

/* An address with open connections. */
struct client {
    struct client *next;
    struct address address;
    long long count;
};

/* Taken when a connection opens or closes, and per request only behind a trusted proxy. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct client *buckets[BUCKETS];
static atomic_llong connections;

bool clients_connect(long long max)
{
    return atomic_fetch_add(&connections, 1) < max;
}

void clients_disconnect(void)
{
    atomic_fetch_sub(&connections, 1);
}

long long clients_connected(void)
{
    return atomic_load(&connections);
}

static struct client **find_slot(const struct address *a)
{
    struct client **slot = &buckets[hash_bytes(a->bytes, ADDRESS_BYTES, HASH_SEED) % BUCKETS];
    while (*slot && memcmp((*slot)->address.bytes, a->bytes, ADDRESS_BYTES) != 0)
        slot = &(*slot)->next;
    return slot;
}

struct client *clients_add(const struct address *address, long long max, enum err *err)
{
    pthread_mutex_lock(&mutex);
    struct client **slot = find_slot(address);
    if (!*slot) {
        *slot = memory_zero(1, sizeof **slot);
        (*slot)->address = *address;
    }
    struct client *c = *slot;
    *err = ++c->count > max ? ERR_TOO_MANY_CONNECTIONS_FROM_ADDRESS : OK;
    pthread_mutex_unlock(&mutex);
    return c;
}

void clients_remove(struct client *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&mutex);
    if (--c->count == 0) {
        *find_slot(&c->address) = c->next;
        free(c);
    }
    pthread_mutex_unlock(&mutex);
}

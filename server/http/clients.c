/* Counts open connections, in total and per client address. This is the only state that all loops share. */
#include "server/http/clients.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"

enum { BUCKETS = 4096 };

/* An address with open connections. */
struct peer {
    struct peer *next;
    unsigned char bytes[16];
    long long count;
};

struct client {
    struct peer *peer;
    enum err verdict;
};

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* taken when a connection opens or closes, never per request */
static struct peer *buckets[BUCKETS];
static atomic_llong total;

static void address_bytes(const struct sockaddr *address, unsigned char out[16])
{
    memset(out, 0, 16);
    if (address && address->sa_family == AF_INET)
        memcpy(out, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    else if (address && address->sa_family == AF_INET6)
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
}

static struct peer **peer_slot(const unsigned char bytes[16])
{
    struct peer **slot = &buckets[hash_bytes(bytes, 16, HASH_SEED) % BUCKETS];
    while (*slot && memcmp((*slot)->bytes, bytes, 16) != 0)
        slot = &(*slot)->next;
    return slot;
}

struct client *clients_add(const struct sockaddr *address, long long max_total, long long max_per_address)
{
    unsigned char bytes[16];
    address_bytes(address, bytes);
    struct client *c = calloc(1, sizeof *c);
    pthread_mutex_lock(&mutex);
    struct peer **slot = peer_slot(bytes);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        memcpy((*slot)->bytes, bytes, 16);
    }
    c->peer = *slot;
    long long from_peer = ++c->peer->count;
    pthread_mutex_unlock(&mutex);
    long long all = atomic_fetch_add(&total, 1) + 1;
    c->verdict = all > max_total               ? ERR_TOO_MANY_CONNECTIONS
                 : from_peer > max_per_address ? ERR_TOO_MANY_CONNECTIONS_FROM_ADDRESS
                                               : OK;
    return c;
}

void clients_remove(struct client *c)
{
    atomic_fetch_sub(&total, 1);
    pthread_mutex_lock(&mutex);
    if (--c->peer->count == 0) {
        struct peer **slot = peer_slot(c->peer->bytes);
        struct peer *gone = *slot;
        *slot = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&mutex);
    free(c);
}

enum err clients_verdict(const struct client *c)
{
    return c->verdict;
}

long long clients_count(void)
{
    return atomic_load(&total);
}

/* Events per client address over all loops, and which of them are logged. */
#include "server/http/address_events.h"

#include <string.h>

#include "core/base/hash.h"

enum { NETWORK_BYTES = 8, LINES_A_SECOND = 10, LINES_AT_ONCE = 100 };

#define NS_PER_S  INT64_C(1000000000)
#define WINDOW_NS (600 * NS_PER_S)

static struct address network_of(const struct address *a)
{
    static const unsigned char mapped_v4[12] = { [10] = 0xff, [11] = 0xff };
    struct address n = *a;
    if (memcmp(n.bytes, mapped_v4, sizeof mapped_v4) != 0)
        memset(n.bytes + NETWORK_BYTES, 0, ADDRESS_BYTES - NETWORK_BYTES);
    return n;
}

/* The entry of the address; a new one takes the place of the one that is unused for longest. */
static struct address_entry *entry(struct address_events *e, const struct address *a, int64_t now_ns)
{
    const struct address network = network_of(a);
    struct address_entry *row =
        e->table[hash_bytes(network.bytes, ADDRESS_BYTES, HASH_SEED) % ADDRESS_EVENTS_ROWS];
    struct address_entry *oldest = row;
    for (int i = 0; i < ADDRESS_EVENTS_WAYS; i++) {
        if (row[i].begin_ns && memcmp(row[i].network.bytes, network.bytes, ADDRESS_BYTES) == 0) {
            row[i].last_ns = now_ns;
            return &row[i];
        }
        if (row[i].last_ns < oldest->last_ns)
            oldest = &row[i];
    }
    *oldest = (struct address_entry){ .network = network, .begin_ns = now_ns, .last_ns = now_ns };
    return oldest;
}

int64_t address_events_take(struct address_events *e, const struct address *a, struct rate allowance,
                            int64_t now_ns)
{
    int64_t wait;
    pthread_mutex_lock(&e->mutex);
    struct address_entry *of = entry(e, a, now_ns);
    of->full_ns = rate_take(allowance, of->full_ns, now_ns, &wait);
    pthread_mutex_unlock(&e->mutex);
    return wait;
}

void address_events_return(struct address_events *e, const struct address *a, struct rate allowance,
                           int64_t now_ns)
{
    pthread_mutex_lock(&e->mutex);
    entry(e, a, now_ns)->full_ns -= allowance.interval_ns;
    pthread_mutex_unlock(&e->mutex);
}

int64_t address_events_count(struct address_events *e, const struct address *a, int64_t now_ns)
{
    const struct rate lines = rate_of(LINES_A_SECOND, NS_PER_S, LINES_AT_ONCE);
    int64_t wait = 1;
    pthread_mutex_lock(&e->mutex);
    struct address_entry *of = entry(e, a, now_ns);
    if (now_ns - of->begin_ns >= WINDOW_NS) {
        of->begin_ns = now_ns;
        of->count = 0;
    }
    const int64_t count = ++of->count;
    if ((count & (count - 1)) == 0)
        e->lines_full_ns = rate_take(lines, e->lines_full_ns, now_ns, &wait);
    pthread_mutex_unlock(&e->mutex);
    return wait ? 0 : count;
}

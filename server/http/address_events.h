/* Events per client address over all loops, and which of them are logged. */
#ifndef DAYBOOK_SERVER_HTTP_ADDRESS_EVENTS_H
#define DAYBOOK_SERVER_HTTP_ADDRESS_EVENTS_H

#include <pthread.h>
#include <stdint.h>

#include "core/base/rate.h"
#include "server/http/address.h"

enum { ADDRESS_EVENTS_ROWS = 1024, ADDRESS_EVENTS_WAYS = 4 };

/* The events of one kind, in static memory. An IPv6 client has a /64 at least, so that counts as one address.
 * The table is bounded: when more addresses have events than it holds, those whose last event is oldest are
 * forgotten. */
struct address_events {
    pthread_mutex_t mutex;
    struct address_entry {
        struct address network;
        int64_t full_ns;  /* of the address's allowance: see core/base/rate.h */
        int64_t begin_ns; /* of the window; 0: empty */
        int64_t count;    /* events within the window */
        int64_t last_ns;
    } table[ADDRESS_EVENTS_ROWS][ADDRESS_EVENTS_WAYS];
    int64_t lines_full_ns;
};

#define ADDRESS_EVENTS_INITIALIZER { .mutex = PTHREAD_MUTEX_INITIALIZER }

/* Takes one event from the allowance of the address. Returns 0, or the time until it has another. */
int64_t address_events_take(struct address_events *e, const struct address *a, struct rate allowance,
                            int64_t now_ns);
/* Gives an event back. */
void address_events_return(struct address_events *e, const struct address *a, struct rate allowance,
                           int64_t now_ns);

/* Counts an event. Returns its number within the address's window of ten minutes if it should be logged, else
 * 0: the events 1, 2, 4, 8, ... of an address are, and of all addresses ten a second after the first hundred.
 */
int64_t address_events_count(struct address_events *e, const struct address *a, int64_t now_ns);

#endif

/* A circuit breaker: blocks requests after several failures in a row, then lets one probe through. */
#ifndef DAYBOOK_SERVER_REMOTE_BREAKER_H
#define DAYBOOK_SERVER_REMOTE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN /* one probe is running */ };

struct breaker { /* zero-initialised: closed */
    enum breaker_state state;
    int failures; /* in a row */
    int64_t pause_us, until_us;
};

enum { BREAKER_FAILURES = 3, BREAKER_FIRST_PAUSE_US = 1000 * 1000, BREAKER_MAX_PAUSE_US = 30 * 1000 * 1000 };

/* Whether a request may start now. If so, the caller must report the outcome with one of the next three
 * functions. */
bool breaker_enter(struct breaker *b, int64_t now_us);
/* Returns true if this closed the breaker. */
bool breaker_success(struct breaker *b);
/* Returns true if this opened the breaker, or kept it open for another pause. */
bool breaker_failure(struct breaker *b, int64_t now_us);
/* The request was cancelled, or its outcome says nothing about the server. */
void breaker_leave(struct breaker *b);

/* Whether breaker_enter would return true. */
bool breaker_allows(const struct breaker *b, int64_t now_us);

#endif

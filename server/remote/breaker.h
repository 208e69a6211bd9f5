/* A circuit breaker: after some failures in a row nobody asks any more, until one may try again. */
#ifndef DAYBOOK_SERVER_REMOTE_BREAKER_H
#define DAYBOOK_SERVER_REMOTE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRYING /* open, and one is out to try */ };

struct breaker { /* all zero: closed */
    enum breaker_state state;
    int failures; /* in a row */
    int64_t pause_us, until_us;
};

enum { BREAKER_FAILURES = 3, BREAKER_FIRST_PAUSE_US = 1000 * 1000, BREAKER_MOST_PAUSE_US = 30 * 1000 * 1000 };

/* Whether one may ask now. Whoever may must tell what came of it, by one of the next three. */
bool breaker_enter(struct breaker *b, int64_t now_us);
/* True: that closed it. */
bool breaker_success(struct breaker *b);
/* True: that opened it, or kept it open for another pause. */
bool breaker_failure(struct breaker *b, int64_t now_us);
/* It was given up, or says nothing about the other side. */
void breaker_leave(struct breaker *b);

/* Whether breaker_enter would say yes. */
bool breaker_lets_in(const struct breaker *b, int64_t now_us);

#endif

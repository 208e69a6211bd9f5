/* One event loop: the file descriptors and timers of one thread. ARCHITECTURE.md says what loops share. */
#ifndef DAYBOOK_SERVER_LOOP_H
#define DAYBOOK_SERVER_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

struct http;
struct db;
struct auth;
struct metrics;
struct remote;
struct llm;
struct remote_embedder;
struct worker;
struct embed_worker;
struct config;

/* Calls `ready` when a descriptor is ready. Embed it; `ready` finds its owner with container_of. */
struct watch {
    int fd;
    uint32_t events; /* registered epoll events; 0: not registered */
    void (*ready)(struct watch *w, uint32_t events);
};

struct timer {
    struct timer *prev, *next;
    int64_t at_us; /* on the loop's clock */
    void (*fire)(struct timer *t);
    bool armed;
    int list; /* index into loop.timers */
};

/* Timers sorted by time. */
struct timer_list {
    struct timer *first, *last;
};
enum { TIMER_LISTS = 40 }; /* one for each bit length of a delay */

struct loop {
    int index;
    int epoll;
    int64_t now_us; /* the monotonic clock, read once per turn */
    struct timer_list timers[TIMER_LISTS];
    uint64_t timed; /* bit mask of the lists that are not empty */
    const struct config *config;
    /* the parts of the service on this loop */
    struct http *http;
    struct db *db;
    struct auth *auth;
    struct metrics *metrics;
    struct remote *remote;             /* NULL: no model and no endpoint are configured */
    struct llm *llm;                   /* NULL: no model is configured */
    struct remote_embedder *embedder;  /* NULL: the built-in embedder is used */
    struct worker *worker;             /* NULL: the service stops */
    struct embed_worker *embed_worker; /* NULL: the remote endpoint is used */
};

bool loop_open(struct loop *l);
void loop_close(struct loop *l);

/* Waits for descriptors or the next timer, at most `max_us` (-1: no limit), and runs their callbacks. */
void loop_turn(struct loop *l, int64_t max_us);

/* Registers the watch, changes its events, or removes it (events 0). */
void loop_watch(struct loop *l, struct watch *w, uint32_t events);

/* Arms or re-arms the timer. Arming timers that share one constant delay is O(1): each goes to the end of its
 * list. */
void loop_timer(struct loop *l, struct timer *t, int64_t delay_us);
void loop_timer_off(struct loop *l, struct timer *t);

/* The current monotonic time. */
int64_t loop_clock_us(void);
/* The wall clock in microseconds since 1970. */
int64_t loop_wall_us(void);

#endif

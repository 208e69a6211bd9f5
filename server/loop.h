/* One event loop: the file descriptors and timers of one thread. Loops share nothing. */
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

/* Something that wants to know when a descriptor is ready. Embed it; `ready` finds its owner by container_of.
 */
struct watch {
    int fd;
    uint32_t events; /* what it is registered for; 0: not at all */
    void (*ready)(struct watch *w, uint32_t events);
};

struct timer {
    struct timer *prev, *next;
    int64_t at_us; /* on the loop's clock */
    void (*fire)(struct timer *t);
    bool armed;
    int list; /* the one that it is in */
};

/* Timers in the order of their time. */
struct timer_list {
    struct timer *first, *last;
};
enum { TIMER_LISTS = 40 }; /* one for each length of a delay, in bits */

struct loop {
    int index;
    int epoll;
    int64_t now_us; /* the monotonic clock, read once a turn */
    struct timer_list timers[TIMER_LISTS];
    uint64_t timed; /* a bit for each list that is not empty */
    const struct config *config;
    /* the parts of the service that live on this loop */
    struct http *http;
    struct db *db;
    struct auth *auth;
    struct metrics *metrics;
    struct remote *remote;             /* NULL: there is no other server to ask */
    struct llm *llm;                   /* NULL: no model is configured */
    struct remote_embedder *embedder;  /* NULL: the built-in one embeds */
    struct worker *worker;             /* NULL: the service stops */
    struct embed_worker *embed_worker; /* NULL: the endpoint embeds */
};

bool loop_open(struct loop *l);
void loop_close(struct loop *l);

/* Waits for descriptors or the next timer, at most `most_us` (-1: no limit), and calls whoever is concerned.
 */
void loop_turn(struct loop *l, int64_t most_us);

/* Registers, changes or (events 0) removes. */
void loop_watch(struct loop *l, struct watch *w, uint32_t events);

/* Arms the timer, or arms it again. Timers of one constant delay cost nothing to arm, however many there are
 * of others: they go to the end of a list of their own. */
void loop_timer(struct loop *l, struct timer *t, int64_t delay_us);
void loop_timer_off(struct loop *l, struct timer *t);

/* The monotonic clock, read now. */
int64_t loop_clock_us(void);
/* Wall clock in microseconds since 1970: the default for the caller's time. */
int64_t loop_wall_us(void);

#endif

/* HTTP requests to other servers on the event loop. Only server/remote uses libcurl. */
#ifndef DAYBOOK_SERVER_REMOTE_REMOTE_H
#define DAYBOOK_SERVER_REMOTE_REMOTE_H

#include "server/task.h"

enum remote_outcome {
    REMOTE_ANSWERED,
    REMOTE_UNREACHABLE, /* no connection: refused, unknown host, or time-out */
    REMOTE_LOST,        /* the connection closed before the response was complete */
    REMOTE_TIMEOUT,     /* connected, but no complete response in time */
    REMOTE_TOO_LARGE,   /* more than REMOTE_MAX_BYTES */
    REMOTE_BROKEN,      /* not HTTP, or an invalid certificate */
};

enum { REMOTE_MAX_BYTES = 8 << 20 };

struct remote_request {
    const char *url;            /* http or https; redirects are not followed */
    const char *const *headers; /* "Name: value", NULL-terminated; the content type is always JSON */
    const char *body;
    size_t body_len;
    int64_t limit_ms;    /* until the response is complete */
    struct arena *arena; /* for the response; NULL: the task's arena */
};

struct remote_answer {
    enum remote_outcome outcome;
    int status; /* for REMOTE_ANSWERED, like the members below */
    char *body; /* NUL-terminated */
    size_t len;
    int64_t retry_after_ms; /* -1: no such header */
    const char *why;        /* for all other outcomes: the reason */
};

/* Once per process, before the first loop starts and after the last one ends. */
bool remote_setup(void);
void remote_teardown(void);

/* One per loop. Closing cancels all waits. */
struct remote *remote_open(struct loop *loop);
void remote_close(struct remote *r);

/* OK: `answer` holds the outcome. Any other result: the reason of a cancellation. */
enum err remote_post(struct task *t, const struct remote_request *request,
                     struct remote_answer *answer) must_check;
/* Sleeps. */
enum err remote_pause(struct task *t, int64_t ms) must_check;
/* Pseudo-random, for jitter only. */
uint32_t remote_random(struct remote *r);

#endif

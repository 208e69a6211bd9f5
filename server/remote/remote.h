/* Requests to other servers, on the event loop: one is sent, its answer is waited for. The only place that
 * names curl_*. */
#ifndef DAYBOOK_SERVER_REMOTE_REMOTE_H
#define DAYBOOK_SERVER_REMOTE_REMOTE_H

#include "server/task.h"

enum remote_outcome {
    REMOTE_ANSWERED,
    REMOTE_UNREACHABLE, /* no connection: refused, no such host, not in time */
    REMOTE_LOST,        /* the connection ended before the answer did */
    REMOTE_TIMEOUT,     /* connected, but not answered in time */
    REMOTE_TOO_LARGE,   /* more than REMOTE_MOST_BYTES */
    REMOTE_BROKEN,      /* not HTTP, or not the server that its certificate should name */
};

enum { REMOTE_MOST_BYTES = 8 << 20 };

struct remote_request {
    const char *url;            /* http or https; redirects are not followed */
    const char *const *headers; /* "Name: value", NULL-terminated; the content type is always JSON */
    const char *body;
    size_t body_len;
    int64_t limit_ms;    /* from here to the end of the answer */
    struct arena *arena; /* that takes the answer; NULL: the task's */
};

struct remote_answer {
    enum remote_outcome outcome;
    int status; /* the rest is for REMOTE_ANSWERED */
    char *body; /* with a NUL behind it */
    size_t len;
    int64_t retry_after_ms; /* -1: it does not say */
    const char *why;        /* for the others: a few words */
};

/* For the process, before the first loop and after the last. */
bool remote_setup(void);
void remote_teardown(void);

/* For each loop. Closing ends what still waits. */
struct remote *remote_open(struct loop *loop);
void remote_close(struct remote *r);

/* OK: `answer` says what came of it. Any other: why the task may not wait any longer. */
enum err remote_post(struct task *t, const struct remote_request *request,
                     struct remote_answer *answer) must_check;
/* Waits for nothing but time. */
enum err remote_pause(struct task *t, int64_t ms) must_check;
/* For jitter. */
uint32_t remote_random(struct remote *r);

#endif

/* An exchange: one request on a connection, and its reply. server/http knows the application only as a table
 * of functions. */
#ifndef DAYBOOK_SERVER_HTTP_EXCHANGE_H
#define DAYBOOK_SERVER_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "server/http/address.h"
#include "server/http/method.h"
#include "server/task.h"

struct http;
struct spool;
struct MHD_Connection;

/* The request headers that we use. NULL: not sent. */
struct http_headers {
    const char *authorization, *api_key, *request_id, *traceparent, *idempotency_key, *if_none_match, *accept,
        *content_type, *content_length, *transfer_encoding, *expect, *preflight_method, *host, *origin,
        *forwarded_for, *accept_encoding, *content_encoding;
};

struct reply {
    int status; /* 0: no reply yet */
    const char *content_type;
    struct buf body;
    const char *location, *allow, *etag, *request_id;
    int64_t retry_after_s; /* Retry-After of a 429 or 503; 0: one second */
    enum err error;        /* the error that the reply reports */
    bool replayed;         /* the stored response of an earlier request */
    bool close;            /* close the connection after the reply */
    bool no_store;         /* it lacks something that will be there soon: no ETag, no cache */
    const char *vary;      /* the request header that the reply depends on */
    /* Of static files. NULL: none, and a Cache-Control that follows from the ETag. */
    const char *content_encoding, *content_security_policy, *cache_control;
    const char *disposition; /* Content-Disposition: the file name of an export */
};

/* A streamed reply. */
struct stream {
    struct task_wait wait; /* the writer waits here for a slow client */
    char *data;
    size_t len, sent, cap;
    bool started; /* the reply is a stream */
    bool ended, failed;
    bool gone; /* the client has disconnected, or wants no body (HEAD) */
};

/* The table in exchange.c lists the effects and the successors of each state. */
enum exchange_state {
    EXCHANGE_HEADERS,     /* reading the headers */
    EXCHANGE_BODY,        /* reading the body */
    EXCHANGE_CUT,         /* ended in the middle of its body; the daemon is about to close the connection */
    EXCHANGE_IDENTIFYING, /* authenticating the caller before the body is read */
    EXCHANGE_IDENTIFIED,  /* authenticated; the daemon repeats the headers callback, then reads the body */
    EXCHANGE_WORKING,     /* the application has just been called */
    EXCHANGE_POLLED,      /* working; the daemon polls for the reply for a short time */
    EXCHANGE_SUSPENDED,   /* working; the connection is suspended until there is a reply */
    EXCHANGE_ANSWERED,    /* the reply is complete, or its stream has started */
    EXCHANGE_SENDING,     /* the daemon is sending the reply */
    EXCHANGE_DRAINED,     /* the stream's buffer is empty; the connection is suspended until there is more */
    EXCHANGE_STOPPED,     /* the service stops or the client left; the connection was resumed to be closed */
    EXCHANGE_CLOSED,      /* the daemon has finished, but a coroutine still uses the exchange */
    EXCHANGE_GONE,        /* about to be freed */
    EXCHANGE_STATES,
};

struct exchange {
    struct http *http;
    struct loop *loop;
    struct exchange *prev, *next; /* list of exchanges in flight, newest first */
    struct MHD_Connection *connection;
    struct address address; /* of the client */
    struct client *client;  /* counts the request for it; NULL: the connection is counted */
    void *call;             /* the application's memory, allocated with the exchange */
    struct task *task;      /* the application's task; its arena holds the strings of the request */
    struct reply *reply;
    enum exchange_state state; /* changed by exchange_set_state alone */
    /* A coroutine uses the exchange. Not part of the state, because the work and the connection end in either
     * order. */
    bool held;

    enum method method;
    const char *target; /* from the request line */
    struct http_headers headers;
    struct buf body;
    struct spool *spool; /* holds a bulk body instead of `body` */
    bool identified;     /* exchange_identified was called */
    bool takes_interim;  /* HTTP/1.1: a response of 100 may come before the reply */
    enum err refused;    /* not OK: the body is discarded, and this error is sent when it has arrived */
    struct stream stream;

    /* Set by the application after the headers. */
    struct {
        size_t body_bytes;
        int64_t work_ms; /* time limit of the work */
        int64_t own_ms;  /* the same without the time that others work: see task_elsewhere_us */
        bool bulk;       /* the body is spooled, and the work starts with the reply */
        bool sheds;      /* rejected under overload */
        bool unknown;    /* the caller is not known yet */
    } limits;

    struct timer timer;
    int polls;
    int64_t serial, start_us;
    size_t received_bytes, sent_bytes;
    size_t timed_bytes; /* received_bytes when the timer of the body started */
    int64_t timed_us;   /* when the timer of the work started */
};

/* The application's callbacks. All run on the loop's thread. */
struct http_app {
    size_t call_bytes; /* zeroed memory for x->call */
    /* After the request line. Sets x->task and x->reply. */
    void (*open)(struct exchange *x);
    /* After the headers. Sets x->limits, and rejects requests that need no body to be rejected. May complete
     * the reply. */
    enum err (*begin)(struct exchange *x);
    /* Authenticates the caller before a body is read: one in bulk, or that of an unknown caller. Calls
     * exchange_identified, now or later. */
    void (*identify)(struct exchange *x);
    /* After the body. Calls exchange_answered, now or later. */
    void (*run)(struct exchange *x);
    /* Makes the error reply of a rejected request. Calls exchange_answered before it returns. */
    void (*refuse)(struct exchange *x, enum err err);
    /* Writes the log line and metrics when the daemon has finished. `sent`: the whole reply was sent. */
    void (*account)(struct exchange *x, bool sent);
    /* Frees what the application holds, before x->call is freed. */
    void (*close)(struct exchange *x);
};

/* ---- for the application ---- */

bool exchange_has_body(const struct exchange *x);
void exchange_identified(struct exchange *x, enum err err);
/* x->reply is complete, or its stream starts. */
void exchange_answered(struct exchange *x);
/* Call them when a coroutine starts and stops to use the exchange. The release may free it. */
void exchange_hold(struct exchange *x);
void exchange_release(struct exchange *x);

/* Streams: see server/dispatch/call.h. */
enum err exchange_stream_begin(struct exchange *x) must_check;
/* Waits until the buffer has room. Fails if the client has disconnected or the service stops. */
enum err exchange_stream_wait(struct exchange *x) must_check;
enum err exchange_stream_write(struct exchange *x, const void *bytes, size_t len) must_check;
void exchange_stream_end(struct exchange *x, enum err err);

/* The next line of a bulk body: see call_body_line in server/dispatch/call.h. */
enum err exchange_line(struct exchange *x, char **line, size_t *len, int64_t *number) must_check;

#endif

/* One exchange: a request as bytes on a connection, and the reply to it. The application behind it is known
 * by a table of functions only. */
#ifndef DAYBOOK_SERVER_HTTP_EXCHANGE_H
#define DAYBOOK_SERVER_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "server/http/method.h"
#include "server/task.h"

struct http;
struct spool;
struct MHD_Connection;

/* The request headers that are kept. NULL: not sent. */
struct http_headers {
    const char *authorization, *api_key, *request_id, *traceparent, *idempotency_key, *if_none_match, *accept,
        *content_type, *content_length, *transfer_encoding, *expect, *preflight_method;
    bool ambiguous; /* Content-Length came twice */
};

struct reply {
    int status; /* 0: there is none yet */
    const char *content_type;
    struct buf body;
    const char *location, *allow, *etag, *request_id;
    enum err error; /* that it reports; OK: none */
    bool replayed;  /* the stored response of an earlier request */
    bool close;     /* the connection is not to be used again */
    bool no_store;  /* it lacks something that will be there soon: no ETag, no cache */
    bool by_accept; /* another Accept header would have got another reply */
};

/* A reply that is written while it is sent. */
struct stream {
    struct task_wait wait; /* of the writer, for a slow client */
    char *data;
    size_t len, sent, cap;
    bool begun; /* the reply is a stream */
    bool ended, failed;
    bool gone; /* the client has left, or wants no body */
};

/* Where an exchange is. exchange.c says what follows from each state, and which may follow which. */
enum exchange_state {
    EXCHANGE_HEADERS,     /* they are being read */
    EXCHANGE_BODY,        /* it is being read */
    EXCHANGE_TOO_SLOW,    /* it did not arrive in time: the connection is closed at the next bytes */
    EXCHANGE_IDENTIFYING, /* before a bulk body is read, the application looks up the caller */
    EXCHANGE_IDENTIFIED,  /* it has: the daemon repeats the headers, then the body follows */
    EXCHANGE_WORKING,     /* the application has just been called */
    EXCHANGE_POLLED,      /* it works; the daemon asks for the reply again and again, for a short time */
    EXCHANGE_SUSPENDED,   /* it works; the connection sleeps until there is a reply */
    EXCHANGE_ANSWERED,    /* the reply is there, or its stream has begun */
    EXCHANGE_SENDING,     /* the daemon has it */
    EXCHANGE_DRAINED,     /* all of the stream so far is sent; the connection sleeps until there is more */
    EXCHANGE_STOPPED,     /* the service stops: the connection was woken only to be closed */
    EXCHANGE_CLOSED,      /* the daemon is done with it, a coroutine of the application is not */
    EXCHANGE_GONE,        /* nobody uses it any more */
    EXCHANGE_STATES,
};

struct exchange {
    struct http *http;
    struct loop *loop;
    struct exchange *prev, *next; /* of those in flight, the newest first */
    struct MHD_Connection *connection;
    void *call;        /* the application's memory, allocated with this */
    struct task *task; /* works for it; its arena holds the texts of the request */
    struct reply *reply;
    enum exchange_state state; /* changed by exchange_set_state alone */
    /* A coroutine of the application uses it. Not part of the state: the work and the connection end in
     * either order. */
    bool held;

    enum method method;
    const char *target; /* of the request line */
    struct http_headers headers;
    struct buf body;
    struct spool *spool; /* or the file that holds a bulk body */
    enum err refused;    /* why the body is not kept; the reply when all of it has arrived */
    struct stream stream;

    /* Set by the application with the headers. */
    struct {
        size_t body_bytes;
        int64_t work_ms; /* how long the work may take */
        bool bulk;       /* the body goes to a file, and work begins with the reply */
        bool sheds;      /* refused while too many are worked on */
    } limits;

    struct timer timer;
    int polls;
    int64_t serial, start_us;
    size_t received_bytes, sent_bytes;
};

/* What the application does. All on the loop's thread. */
struct http_app {
    size_t call_bytes; /* zeroed memory for x->call */
    /* With the request line: sets x->task and x->reply. */
    void (*open)(struct exchange *x);
    /* With the headers: sets x->limits, and refuses what needs no body. A reply may be complete already. */
    enum err (*begin)(struct exchange *x);
    /* Before a bulk body is read: looks up the caller. exchange_identified follows, now or later. */
    void (*identify)(struct exchange *x);
    /* With the body. exchange_answered follows, now or later. */
    void (*run)(struct exchange *x);
    /* Makes the reply to a request that is refused with this error; exchange_answered follows at once. */
    void (*refuse)(struct exchange *x, enum err err);
    /* The daemon is done with it: for the log. `sent`: the client has the whole reply. */
    void (*account)(struct exchange *x, bool sent);
    /* Its memory is about to go. */
    void (*close)(struct exchange *x);
};

/* ---- for the application ---- */

bool exchange_has_body(const struct exchange *x);
void exchange_identified(struct exchange *x, enum err err);
/* x->reply is complete, or its stream begins. */
void exchange_answered(struct exchange *x);
/* A coroutine begins to use the exchange, or has ended: then the exchange may be gone. */
void exchange_hold(struct exchange *x);
void exchange_release(struct exchange *x);

/* Streams: see server/call.h. */
enum err exchange_stream_begin(struct exchange *x) must_check;
enum err exchange_stream_write(struct exchange *x, const void *bytes, size_t len) must_check;
void exchange_stream_end(struct exchange *x, enum err err);

/* The next line of a bulk body: see body_line in server/call.h. */
enum err exchange_line(struct exchange *x, char **line, size_t *len, int64_t *number) must_check;

#endif

/* A call as the HTTP daemon holds it. */
#ifndef DAYBOOK_SERVER_HTTP_EXCHANGE_H
#define DAYBOOK_SERVER_HTTP_EXCHANGE_H

#include <microhttpd.h>

#include "server/call.h"

enum stage {
    STAGE_HEADERS, /* they are being read */
    STAGE_BODY,    /* it is being read */
    STAGE_KEY,     /* the key is looked up before a large body is read; the connection is suspended */
    STAGE_KEY_KNOWN,
    STAGE_WORK,     /* the call runs; the connection is suspended */
    STAGE_ANSWERED, /* the answer is there */
    STAGE_SENDING,  /* and has been given to the daemon */
};

/* An answer that is written while it is sent. */
struct stream {
    char *data;
    size_t len, sent, cap;
    bool ended, failed;
    bool gone; /* the client has left, or wants no body */
};

struct exchange {
    struct call call;
    struct http *http;
    struct exchange *prev, *next; /* those that run or are sent */
    bool listed;
    struct MHD_Connection *connection;
    enum stage stage;
    bool suspended;
    bool patient;     /* it works, but is not suspended yet */
    int looks;        /* how often the daemon asked for its answer */
    bool counted;     /* among those that work */
    bool completed;   /* the daemon is done with it */
    bool cut;         /* too slow or too large: the connection is closed */
    bool overtime;    /* its time is up, but its write must end first */
    bool told;        /* that the service stops */
    enum err refused; /* why its body is not kept; the answer when all of it has come */
    struct timer timer, breath;
    struct stream stream;
    const char *target;
    int64_t start_us;
    size_t body_bytes, sent_bytes;
};

struct http {
    struct loop *loop;
    struct MHD_Daemon *mhd;
    struct watch watch;
    struct exchange *first;
    int in_flight;         /* being read, worked on or sent */
    int working;           /* being worked on: what overload is about; a slow client is not in it */
    bool draining, wanted; /* wanted: there is something for the daemon to do in this turn */
    bool abandoned;        /* those that still work are to end */
    int listen_fd;
    int patient;         /* how many are */
    int64_t ran_us;      /* when the daemon ran last */
    int64_t begun;       /* requests since the start */
    struct quiet *quiet; /* the one that waits until there is nothing else to do */
};

/* The end of that waiting, because the service stops: see quiet.c. */
void quiet_end(struct http *h);

/* See headers.c. */
void headers_read(struct exchange *x);
void headers_add(struct exchange *x, struct MHD_Response *r);
/* The stream's side of the daemon: see stream.c. */
struct MHD_Response *stream_response(struct exchange *x);
void stream_gone(struct exchange *x);
void exchange_resume(struct exchange *x);
/* Wakes a coroutine that waits for the client or for the next turn, not one that waits for the database. */
void exchange_wake(struct exchange *x);

#endif

/* What the files of the HTTP edge share. */
#ifndef DAYBOOK_SERVER_HTTP_HTTP_INTERNAL_H
#define DAYBOOK_SERVER_HTTP_HTTP_INTERNAL_H

#include <microhttpd.h>

#include "server/http/exchange.h"

enum { PATIENCE_US = 5000 }; /* see daemon.c */

struct http {
    struct loop *loop;
    const struct http_app *app;
    struct MHD_Daemon *mhd;
    struct watch watch;
    struct exchange *first;
    int in_flight;  /* being read, worked on or sent */
    int working;    /* being worked on: what overload is about; a slow client is not in it */
    int polled;     /* exchanges in EXCHANGE_POLLED */
    bool draining;  /* new requests are refused */
    bool abandoned; /* those that still work are to end */
    bool wanted;    /* there is something for the daemon to do in this turn */
    int64_t ran_us; /* when the daemon ran last */
    int64_t begun;  /* requests since the start */
};

/* exchange.c */
struct exchange *exchange_new(struct http *h, struct MHD_Connection *connection, const char *target);
void exchange_set_state(struct exchange *x, enum exchange_state state);
/* The time for the body, or for the work, begins anew. */
void exchange_restart_timer(struct exchange *x);
/* The daemon is done with it. */
void exchange_closed(struct exchange *x);

/* headers.c */
void headers_read(struct exchange *x);
void headers_add(struct exchange *x, struct MHD_Response *r);

/* stream.c: the daemon's side. */
struct MHD_Response *stream_response(struct exchange *x);
void stream_gone(struct exchange *x);

#endif

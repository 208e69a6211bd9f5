/* Shared by the files of server/http. */
#ifndef DAYBOOK_SERVER_HTTP_HTTP_INTERNAL_H
#define DAYBOOK_SERVER_HTTP_HTTP_INTERNAL_H

#include <gnutls/abstract.h>
#include <microhttpd.h>

#include "server/http/exchange.h"

enum { POLL_WINDOW_US = 5000 }; /* see daemon.c */

struct http {
    struct loop *loop;
    const struct http_app *app;
    struct MHD_Daemon *mhd;
    struct watch watch;
    struct exchange *first;
    int in_flight;      /* being read, worked on or sent */
    int working;        /* being worked on; compared with max_in_flight. Slow clients do not count */
    int polled;         /* exchanges in EXCHANGE_POLLED */
    bool draining;      /* new requests are rejected */
    bool abandoned;     /* running requests must end */
    bool run_needed;    /* the daemon must run in this turn */
    struct timer sweep; /* looks for clients that left while their connection is suspended */
    struct timer trim;  /* returns the memory of streams and large bodies that have ended */
    int64_t ran_us;     /* time of the daemon's last run */
    int64_t begun;      /* requests since the start */
};

/* exchange.c */
struct exchange *exchange_new(struct http *h, struct MHD_Connection *connection, const char *target);
void exchange_set_state(struct exchange *x, enum exchange_state state);
/* Ends a request in the middle of its body, where the daemon accepts no reply. The log tells why. */
void exchange_cut(struct exchange *x, enum err why);
/* Resumes a suspended connection to be closed. The daemon frees the exchange in its next run. */
void exchange_stop(struct exchange *x);
/* Whether the connection is suspended in the daemon, which then does not notice that its client leaves. */
bool exchange_is_suspended(const struct exchange *x);
/* The daemon has finished with the exchange. */
void exchange_closed(struct exchange *x);

/* peer.c */
void peer_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                 enum MHD_ConnectionNotificationCode what);
/* Sets the address of the exchange. An error if the connection or the head of the request is rejected. */
enum err peer_admit(struct exchange *x);

/* Closes the connection of an exchange in the daemon's next run. */
void peer_cut(const struct exchange *x);
/* Whether the client of a suspended exchange has left. */
bool peer_left(const struct exchange *x);

/* Gives the handshake of a connection the current certificate and key. */
int peer_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                     gnutls_pcert_st **chain, unsigned *length, gnutls_ocsp_data_st **ocsp,
                     unsigned *ocsp_length, gnutls_privkey_t *key, unsigned *flags);

/* tls.c: the pair for one connection, which keeps it until it is closed. On any thread. */
struct tls_pair *tls_take(void);
void tls_release(struct tls_pair *pair);
void tls_present(struct tls_pair *pair, gnutls_pcert_st **chain, unsigned *length, gnutls_privkey_t *key);

/* headers.c */
void headers_read(struct exchange *x);
void headers_add(struct exchange *x, struct MHD_Response *r);

/* stream.c: for the daemon. */
struct MHD_Response *stream_response(struct exchange *x);
void stream_gone(struct exchange *x);
void stream_free(struct exchange *x);

#endif

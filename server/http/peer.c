/* Connections: who is at the other end, and whether there are too many of them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/http/clients.h"
#include "server/http/gate.h"
#include "server/http/http_internal.h"
#include "server/http/proxies.h"

/* A connection, as the daemon's socket context. */
struct peer {
    struct gate *gate;
    struct tls_pair *tls; /* what its handshake used; NULL: no TLS, or no handshake yet */
    struct address address;
    struct client *client; /* NULL: a trusted proxy, whose requests count for their clients */
    enum err verdict;      /* OK: its requests are served */
};

static void peer_open(struct http *h, struct MHD_Connection *connection, struct peer *p)
{
    const struct config *config = h->loop->config;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    p->address = address_of(info ? info->client_addr : NULL);
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    p->gate = gate_open(h->loop, info->connect_fd, &p->address);
    if (!proxies_trust(&p->address))
        p->client = clients_add(&p->address, config->max_connections_per_address, &p->verdict);
    if (!clients_connect(config->max_connections))
        p->verdict = ERR_TOO_MANY_CONNECTIONS;
}

static void peer_close(struct peer *p)
{
    gate_close(p->gate);
    clients_remove(p->client);
    clients_disconnect();
    tls_release(p->tls);
    free(p);
}

void peer_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                 enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        peer_close(*socket_context);
        return;
    }
    struct peer *p = *socket_context = memory_zero(1, sizeof *p);
    peer_open(cls, connection, p);
}

/* A handshake may ask more than once, and must get the same pair each time. */
int peer_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                     gnutls_pcert_st **chain, unsigned *length, gnutls_ocsp_data_st **ocsp,
                     unsigned *ocsp_length, gnutls_privkey_t *key, unsigned *flags)
{
    (void)info;
    struct peer *p =
        MHD_get_connection_info(gnutls_session_get_ptr(session), MHD_CONNECTION_INFO_SOCKET_CONTEXT)
            ->socket_context;
    if (!p->tls)
        p->tls = tls_take();
    tls_present(p->tls, chain, length, key);
    *ocsp = NULL;
    *ocsp_length = 0;
    *flags = 0; /* the pair remains ours */
    return 0;
}

/* A head that the gate has rejected arrives as a request for GATE_REJECTED. */
static enum err check_head(struct exchange *x, struct framing_verdict v)
{
    if (v.err == OK || strcmp(x->target, GATE_REJECTED) != 0)
        return OK;
    if (v.err == ERR_HEADER_TOO_LARGE && !v.why)
        return problem_set(x->task->problem, v.err, "the limit is %lld bytes",
                           (long long)x->loop->config->max_header_bytes);
    return problem_set(x->task->problem, v.err, "%s", v.why);
}

static struct peer *peer_of(const struct exchange *x)
{
    return MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void peer_cut(const struct exchange *x)
{
    gate_cut(peer_of(x)->gate);
}

bool peer_left(const struct exchange *x)
{
    struct gate *g = peer_of(x)->gate;
    const enum gate_client client = gate_client(g);
    if (client == GATE_CLIENT_THERE || client == GATE_CLIENT_GONE)
        return client == GATE_CLIENT_GONE;
    if (x->stream.started)
        return false;      /* the next bytes of the stream will tell */
    if (!x->takes_interim) /* it cannot be asked, and clients of HTTP/1.0 do not close one side only */
        return client == GATE_CLIENT_HALF_CLOSED;
    gate_ask_client(g);
    return false;
}

enum err peer_admit(struct exchange *x)
{
    const struct peer *p = peer_of(x);
    enum err err = p->verdict;
    x->address = p->address;
    if (!p->client) {
        x->address = proxies_client(p->address, x->headers.forwarded_for);
        x->client = clients_add(&x->address, x->loop->config->max_connections_per_address,
                                err == OK ? &err : &(enum err){ OK });
    }
    return err == OK ? check_head(x, gate_verdict(p->gate)) : err;
}

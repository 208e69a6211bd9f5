/* The gate of a connection: every byte that libmicrohttpd receives has passed here. */
#include "server/http/gate.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/http/address_events.h"
#include "server/http/tls.h"
#include "server/log.h"

enum {
    SCRATCH_BYTES = 16384,
    DRAIN_MAX = 4 << 20,
    UNREAD_BYTES = 32 * 1024, /* a first window is about twice as large */
    SWEEP_US = 500 * 1000,
    ASK_US = 1000 * 1000,
};

struct gate {
    struct loop *loop;
    int fd;
    struct address address;   /* of the other end, which may be a proxy */
    gnutls_session_t session; /* NULL: the connection has no TLS, or its handshake is not finished */
    struct framing framing;
    struct framing_verdict verdict;
    char *held; /* bytes that the daemon has not received; NULL: none */
    size_t held_len, held_cap;
    size_t passed;      /* of these, from the start, may be received */
    bool after_blank;   /* the last line that passed was an empty one before a request line */
    struct timer timer; /* the time limit of a head */
    size_t drained;     /* bytes discarded after a rejection */
    int64_t asked_us;   /* when the last interim response was sent; 0: never */
    bool cut;           /* the connection cannot be used any more */
};

/* The gates of this thread's connections, by descriptor. */
static _Thread_local struct gate **gates;
static _Thread_local size_t gates_cap;

/* ---- held bytes ---- */

static char *make_room(struct gate *g, size_t bytes)
{
    if (g->held_cap - g->held_len < bytes) {
        g->held_cap = g->held_len + bytes;
        g->held = memory_resize(g->held, g->held_cap);
    }
    return g->held + g->held_len;
}

static void hold(struct gate *g, const char *bytes, size_t len)
{
    if (!len)
        return;
    memcpy(make_room(g, len), bytes, len);
    g->held_len += len;
}

static void release_held(struct gate *g)
{
    free(g->held);
    g->held = NULL;
    g->held_len = g->held_cap = g->passed = 0;
}

/* Gives held bytes that may pass. */
static size_t give_held(struct gate *g, char *to, size_t size)
{
    const size_t n = g->passed < size ? g->passed : size;
    if (!n)
        return 0;
    memcpy(to, g->held, n);
    if (n == g->held_len) {
        release_held(g);
        return n;
    }
    memmove(g->held, g->held + n, g->held_len - n);
    g->held_len -= n;
    g->passed -= n;
    return n;
}

/* ---- rejecting and cutting ---- */

static void log_cut(const struct gate *g, const char *why)
{
    static struct address_events cuts = ADDRESS_EVENTS_INITIALIZER;
    char address[ADDRESS_TEXT_SIZE];
    const int64_t count = address_events_count(&cuts, &g->address, g->loop->now_us * 1000);
    if (count)
        log_event(LOG_INFO, "connection_cut", "address=%s reason=\"%s\" count=%lld",
                  address_text(&g->address, address), why, (long long)count);
}

/* The daemon closes the connection when its next read fails. */
void gate_cut(struct gate *g)
{
    g->cut = true;
    loop_timer_off(g->loop, &g->timer);
    shutdown(g->fd, SHUT_RDWR);
}

static void cut(struct gate *g, const char *why)
{
    log_cut(g, why);
    gate_cut(g);
}

static void on_head_timeout(struct timer *t)
{
    cut(container_of(t, struct gate, timer), "the head of the request did not arrive in time");
}

/* Replaces all held bytes but the first `passed` by a request that stands for the rejected one. */
static void hold_stand_in(struct gate *g, size_t passed)
{
    static const char request[] = "GET " GATE_REJECTED " HTTP/1.0\r\n\r\n";
    g->held_len = passed;
    hold(g, request, sizeof request - 1);
    g->passed = g->held_len;
}

/* ---- passing ---- */

static void await_head(struct gate *g)
{
    if (!g->timer.armed)
        loop_timer(g->loop, &g->timer, g->loop->config->header_timeout_ms * 1000);
}

/* Checks the head at the start of the bytes. Returns its length, 0 if it is incomplete or invalid. */
static size_t pass_head(struct gate *g, char *bytes, size_t len)
{
    size_t end;
    struct framing_verdict v = framing_find_end(bytes, len, &end);
    if (v.err == OK && (end ? end : len) > (size_t)g->loop->config->max_header_bytes)
        v = (struct framing_verdict){ ERR_HEADER_TOO_LARGE, NULL };
    const bool blank = v.err == OK && end == 2; /* RFC 9112 forgives one before the request line */
    if (blank && g->after_blank)
        v = (struct framing_verdict){ ERR_BAD_REQUEST, "there are several empty lines before the request" };
    if (end)
        g->after_blank = blank;
    if (blank && v.err == OK)
        return end;
    if (v.err == OK)
        v = end ? framing_check_head(&g->framing, bytes, end) : framing_check_start(bytes, len);
    if (v.err == OK && end)
        framing_tidy_head(bytes, end);
    g->verdict = v;
    if (v.err != OK)
        end = 0;
    if (end || v.err != OK)
        loop_timer_off(g->loop, &g->timer);
    else
        await_head(g);
    return end;
}

/* How many of the bytes may pass. *len decreases where bytes are removed. */
static size_t pass(struct gate *g, char *bytes, size_t *len)
{
    size_t at = 0, passed = 0;
    while (at < *len && g->verdict.err == OK && !g->cut) {
        size_t taken, kept;
        if (g->framing.state == FRAMING_HEAD) {
            kept = taken = pass_head(g, bytes + at, *len - at);
            if (!taken)
                break;
        } else {
            struct framing_verdict v = framing_take_body(&g->framing, bytes + at, *len - at, &taken, &kept);
            if (v.err != OK) {
                cut(g, v.why); /* the daemon accepts no reply in the middle of a body */
                break;
            }
        }
        if (passed != at)
            memmove(bytes + passed, bytes + at, kept);
        at += taken;
        passed += kept;
    }
    if (passed != at)
        memmove(bytes + passed, bytes + at, *len - at);
    *len -= at - passed;
    return passed;
}

static bool is_amid_request(const struct gate *g)
{
    return g->held_len || g->framing.state != FRAMING_HEAD;
}

/* ---- receiving ---- */

ssize_t __real_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags);
ssize_t __real_gnutls_record_recv(gnutls_session_t session, void *to, size_t size);
ssize_t __wrap_gnutls_record_recv(gnutls_session_t session, void *to, size_t size);

/* gnutls_record_recv with the results of recv. */
static ssize_t receive_record(gnutls_session_t session, char *to, size_t size)
{
    ssize_t n;
    do
        n = __real_gnutls_record_recv(session, to, size);
    while (n == GNUTLS_E_INTERRUPTED);
    if (n >= 0)
        return n;
    if (n != GNUTLS_E_AGAIN)
        log_event(LOG_DEBUG, "tls_receive_failed", "reason=\"%s\"", gnutls_strerror((int)n));
    errno = n == GNUTLS_E_AGAIN ? EAGAIN : ECONNRESET;
    return -1;
}

/* Like recv. *empty: there are no more bytes now. */
static ssize_t receive_bytes(struct gate *g, char *to, size_t size, bool *empty)
{
    if (!g->session) {
        const ssize_t n = __real_recv(g->fd, to, size, 0);
        *empty = n < (ssize_t)size;
        return n;
    }
    /* Another record may follow a short one; the daemon knows that, and asks again. */
    const ssize_t n = receive_record(g->session, to, size);
    *empty = n < (ssize_t)size && !gnutls_record_check_pending(g->session);
    return n;
}

/* Discards what a rejected client still sends, so that it can read the reply instead of a reset. */
static void drain(struct gate *g)
{
    char scratch[SCRATCH_BYTES];
    bool empty;
    for (ssize_t n; g->drained < DRAIN_MAX && (n = receive_bytes(g, scratch, sizeof scratch, &empty)) > 0;)
        g->drained += (size_t)n;
}

/* The bytes are in the daemon's buffer already. */
static size_t pass_received(struct gate *g, char *bytes, size_t len)
{
    const size_t passed = pass(g, bytes, &len);
    if (g->verdict.err != OK)
        hold_stand_in(g, 0);
    else if (!g->cut)
        hold(g, bytes + passed, len - passed);
    return passed;
}

/* `len` bytes were added to the held ones. */
static size_t pass_held(struct gate *g, size_t len, char *to, size_t size)
{
    g->held_len += len;
    g->passed = pass(g, g->held, &g->held_len);
    if (g->verdict.err != OK)
        hold_stand_in(g, g->passed);
    return give_held(g, to, size);
}

/* Receives once. Returns the number of bytes in `to`, 0 if none may pass yet, or -1 with errno, which is
 * 0 if the client has closed the connection between two requests. *empty: there are no more bytes now. */
static ssize_t receive_once(struct gate *g, char *to, size_t size, bool *empty)
{
    const bool direct = !g->held_len; /* the usual case: nothing is copied */
    const size_t room = direct ? size : SCRATCH_BYTES;
    char *at = direct ? to : make_room(g, room);
    const ssize_t n = receive_bytes(g, at, room, empty);
    if (n == 0 && is_amid_request(g)) {
        errno = ECONNRESET; /* the client has gone, and its request will never be complete */
        return -1;
    }
    if (n == 0)
        errno = 0;
    if (n <= 0)
        return -1;
    return (ssize_t)(direct ? pass_received(g, to, (size_t)n) : pass_held(g, (size_t)n, to, size));
}

/* Like recv: the daemon takes fewer bytes than it asked for to mean that the socket is empty, and then waits
 * for the next event. If a client sent half a request and closed the connection before it was read, there is
 * no next event. So after half a request, ask once more. */
static ssize_t receive(struct gate *g, char *to, size_t size)
{
    size_t given = give_held(g, to, size);
    bool empty = false;
    while (given < size && !(empty && !is_amid_request(g)) && g->verdict.err == OK && !g->cut) {
        const ssize_t n = receive_once(g, to + given, size - given, &empty);
        if (n < 0 && (!given || errno == ECONNRESET))
            return errno ? -1 : 0;
        if (n < 0)
            break;
        given += (size_t)n;
    }
    if (g->verdict.err != OK) {
        given += give_held(g, to + given, size - given);
        drain(g);
    }
    if (given)
        return (ssize_t)given;
    errno = g->cut ? ECONNRESET : EAGAIN;
    return -1;
}

static struct gate *find_gate(int fd)
{
    return fd >= 0 && (size_t)fd < gates_cap ? gates[fd] : NULL;
}

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    struct gate *g = find_gate(fd);
    return g ? receive(g, to, size) : __real_recv(fd, to, size, flags);
}

/* With TLS, the daemon receives with this once the handshake is finished. */
ssize_t __wrap_gnutls_record_recv(gnutls_session_t session, void *to, size_t size)
{
    struct gate *g = find_gate(gnutls_transport_get_int(session));
    if (!g)
        return __real_gnutls_record_recv(session, to, size);
    g->session = session;
    const ssize_t n = receive(g, to, size);
    if (n >= 0)
        return n;
    return errno == EAGAIN ? GNUTLS_E_AGAIN : GNUTLS_E_PULL_ERROR;
}

/* ---- clients that have gone ---- */

static _Thread_local struct timer sweep;

static bool has_gone(int fd)
{
    char byte;
    const ssize_t n = __real_recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* If a client sent a request and closed the connection before it was read, the daemon has no event left that
 * tells it. To shut down what the client has closed already makes a new one, and spares a pending reply. */
static void on_sweep(struct timer *t)
{
    struct loop *loop = NULL;
    for (size_t fd = 0; fd < gates_cap; fd++) {
        if (!gates[fd])
            continue;
        loop = gates[fd]->loop;
        if (has_gone((int)fd))
            shutdown((int)fd, SHUT_RD);
    }
    if (loop)
        loop_timer(loop, t, SWEEP_US);
}

enum gate_client gate_client(const struct gate *g)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (getsockopt(g->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return GATE_CLIENT_GONE;
    if (info.tcpi_state == TCP_CLOSE_WAIT)
        return GATE_CLIENT_HALF_CLOSED;
    if (info.tcpi_state != TCP_ESTABLISHED)
        return GATE_CLIENT_GONE;
    int unread;
    const bool ahead = ioctl(g->fd, FIONREAD, &unread) == 0 && unread >= UNREAD_BYTES;
    return ahead ? GATE_CLIENT_AHEAD : GATE_CLIENT_THERE;
}

/* Whether it can be sent does not matter: a full buffer means that the client is still there. */
void gate_ask_client(struct gate *g)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (g->asked_us && g->loop->now_us - g->asked_us < ASK_US)
        return;
    g->asked_us = g->loop->now_us;
    if (g->session)
        (void)gnutls_record_send(g->session, interim, sizeof interim - 1);
    else
        (void)!send(g->fd, interim, sizeof interim - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- open and close ---- */

static void make_slot(int fd)
{
    if ((size_t)fd < gates_cap)
        return;
    const size_t cap = ((size_t)fd + 1) * 2;
    gates = memory_resize(gates, cap * sizeof(struct gate *));
    memset(gates + gates_cap, 0, (cap - gates_cap) * sizeof(struct gate *));
    gates_cap = cap;
}

struct gate *gate_open(struct loop *loop, int fd, const struct address *address)
{
    struct gate *g = memory_zero(1, sizeof *g);
    g->loop = loop;
    g->fd = fd;
    g->address = *address;
    g->timer.fire = on_head_timeout;
    make_slot(fd);
    gates[fd] = g;
    await_head(g);
    sweep.fire = on_sweep;
    if (!sweep.armed)
        loop_timer(loop, &sweep, SWEEP_US);
    return g;
}

void gate_close(struct gate *g)
{
    if (tls_is_on() && !g->session && !g->cut)
        log_cut(g, "the TLS handshake was not finished");
    gates[g->fd] = NULL;
    loop_timer_off(g->loop, &g->timer);
    release_held(g);
    free(g);
}

void gate_thread_end(struct loop *loop)
{
    loop_timer_off(loop, &sweep);
    free(gates);
    gates = NULL;
    gates_cap = 0;
}

struct framing_verdict gate_verdict(const struct gate *g)
{
    return g->verdict;
}

/* The HTTP server of one loop: turns libmicrohttpd's callbacks into exchanges and sends their replies. */
#include "server/http/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "server/config.h"
#include "server/http/gate.h"
#include "server/http/http_internal.h"
#include "server/http/spool.h"
#include "server/http/tls.h"
#include "server/log.h"

enum {
    /* Of a connection, beside the head: 64 bytes for each header, parameter and trailer that framing.h
     * allows, the trailers, and the head of the reply. libmicrohttpd clears all of it after each request, so
     * every byte of it is resident memory. */
    PARSED_BYTES = 8192,
    SPARE_CONNECTIONS = 64, /* accepted above the limit, so that their clients get an error */
    /* Suspending and resuming a connection costs two epoll_ctl and a recv, a sixth of a short request, and
     * most replies are ready within a turn or two. So the daemon polls for a reply this often, for at most
     * POLL_WINDOW_US, before it suspends the connection. A window shorter than the kernel's tick would
     * program the hardware timer twice per request. */
    MAX_POLLS = 16,
    DRAIN_BYTES =
        64 << 20, /* of a rejected body are read past the limit, so that the client sees the error */
};

/* ---- reading ---- */

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    return exchange_new(cls, connection, target);
}

/* The daemon closes the connection after this long without a byte received or sent. */
static void set_idle_limit(struct MHD_Connection *connection, int64_t ms)
{
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)((ms + 999) / 1000));
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode how)
{
    struct http *h = cls;
    struct exchange *x = *con_cls;
    *con_cls = NULL;
    if (!x)
        return;
    if (x->stream.started)
        set_idle_limit(connection, h->loop->config->idle_timeout_ms);
    h->run_needed = true;             /* the next request may already be in the buffer */
    if (x->state != EXCHANGE_HEADERS) /* otherwise only the request line arrived */
        h->app->account(x, x->state == EXCHANGE_SENDING && how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    exchange_closed(x);
}

/* Public routes need no database and are always served, so that monitoring works under overload. */
static bool overloaded(const struct exchange *x)
{
    return x->limits.sheds && x->http->working >= x->loop->config->max_in_flight;
}

static enum err admit(struct exchange *x)
{
    enum err err = peer_admit(x);
    if (err == OK && x->http->draining)
        err = ERR_SHUTTING_DOWN;
    if (err != OK)
        x->reply->close = true;
    return err == OK && overloaded(x) ? ERR_OVERLOADED : err;
}

/* At least max_bulk_bytes, so that a single bulk body always fits. */
static int64_t spool_limit(const struct config *config)
{
    return config->max_spool_bytes > config->max_bulk_bytes ? config->max_spool_bytes
                                                            : config->max_bulk_bytes;
}

static enum err open_spool(struct exchange *x)
{
    x->spool = arena_alloc(x->task->arena, sizeof *x->spool);
    return spool_open(x->spool, spool_limit(x->loop->config));
}

bool exchange_has_body(const struct exchange *x)
{
    return x->headers.transfer_encoding ||
           (x->headers.content_length && strtoull(x->headers.content_length, NULL, 10) > 0);
}

/* A reply before the end of the body closes the connection, and a client that is still writing may see a
 * reset instead of the reply. So read the rest of the body first, unless it is too long. */
static bool should_drain(const struct exchange *x)
{
    if (!exchange_has_body(x) || x->headers.expect || x->reply->close)
        return false;
    const char *length = x->headers.content_length;
    return !length || strtoull(length, NULL, 10) <= x->limits.body_bytes + DRAIN_BYTES;
}

void exchange_identified(struct exchange *x, enum err err)
{
    if (x->state == EXCHANGE_STOPPED)
        return;
    x->identified = true;
    if (err == OK && x->limits.bulk)
        err = open_spool(x);
    if (err != OK && should_drain(x)) {
        x->refused = err;
        err = OK;
    }
    if (err != OK)
        x->http->app->refuse(x, err);
    else if (x->state == EXCHANGE_IDENTIFYING)
        exchange_set_state(x, EXCHANGE_IDENTIFIED);
}

/* Authenticates before the body is read, so that an unknown key cannot fill the memory or the disk. */
static void identify(struct exchange *x)
{
    x->http->app->identify(x);
    if (x->state == EXCHANGE_BODY && !x->identified)
        exchange_set_state(x, EXCHANGE_IDENTIFYING);
}

static void begin(struct exchange *x, const char *method)
{
    const struct http_app *app = x->http->app;
    x->method = method_parse(method);
    headers_read(x);
    x->serial = ++x->http->begun;
    exchange_set_state(x, EXCHANGE_BODY);
    x->limits.body_bytes = (size_t)x->loop->config->max_body_bytes;
    enum err err = app->begin(x);
    enum err refused = admit(x); /* app->begin sets the request id, but this error takes precedence */
    if (refused == OK && err != OK && should_drain(x))
        x->refused = err;
    else if (refused != OK || err != OK)
        app->refuse(x, refused != OK ? refused : err);
    else if (x->reply->status) /* OPTIONS */
        exchange_answered(x);
    else if ((x->limits.bulk || x->limits.unknown) && exchange_has_body(x))
        identify(x);
}

static enum err store_body(struct exchange *x, const char *data, size_t size)
{
    size_t max = x->limits.body_bytes;
    if (x->received_bytes > max)
        return problem_set(x->task->problem, ERR_BODY_TOO_LARGE, "the limit is %zu bytes", max);
    if (x->spool)
        return spool_add(x->spool, data, size);
    buf_add(&x->body, data, size);
    return OK;
}

static enum MHD_Result take_body(struct exchange *x, const char *data, size_t *size)
{
    x->http->run_needed = true; /* more may already be in the buffer */
    x->received_bytes += *size;
    if (x->received_bytes > x->limits.body_bytes + DRAIN_BYTES) {
        exchange_cut(x, x->refused);
        return MHD_NO;
    }
    if (x->refused == OK)
        x->refused = store_body(x, data, *size);
    if (x->refused != OK && x->spool)
        spool_close(x->spool);
    *size = 0;
    return MHD_YES;
}

static void work(struct exchange *x)
{
    const struct http_app *app = x->http->app;
    if (x->refused != OK) {
        app->refuse(x, x->refused);
    } else if (overloaded(x)) { /* it became overloaded while the body arrived */
        app->refuse(x, ERR_OVERLOADED);
    } else {
        exchange_set_state(x, EXCHANGE_WORKING);
        app->run(x);
    }
}

/* ---- replying ---- */

static enum MHD_Result send_reply(struct exchange *x)
{
    struct reply *reply = x->reply;
    struct MHD_Response *r =
        x->stream.started && x->method != HEAD
            ? stream_response(x)
            : MHD_create_response_from_buffer(reply->body.len, reply->body.data, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    headers_add(x, r);
    if (!x->stream.started)
        x->sent_bytes = reply->body.len;
    else
        set_idle_limit(x->connection, x->loop->config->stream_idle_timeout_ms);
    exchange_set_state(x, EXCHANGE_SENDING);
    enum MHD_Result ok = MHD_queue_response(x->connection, (unsigned)reply->status, r);
    MHD_destroy_response(r);
    return ok;
}

static bool should_poll(struct exchange *x)
{
    return !x->held && x->polls++ < MAX_POLLS && x->loop->now_us - x->start_us < POLL_WINDOW_US;
}

static void wait_for_reply(struct exchange *x)
{
    if (!should_poll(x))
        exchange_set_state(x, EXCHANGE_SUSPENDED);
    else if (x->state == EXCHANGE_WORKING)
        exchange_set_state(x, EXCHANGE_POLLED);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **con_cls)
{
    (void)cls;
    (void)connection;
    (void)url;
    struct exchange *x = *con_cls;
    switch (x->state) {
    case EXCHANGE_HEADERS:
        x->takes_interim = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
        begin(x, method);
        if (!exchange_has_body(x))
            return MHD_YES; /* a reply in this callback would close the connection; the next one follows at
                               once */
        break;
    case EXCHANGE_BODY:
        if (*size)
            return take_body(x, data, size);
        work(x);
        break;
    case EXCHANGE_IDENTIFIED:
        exchange_set_state(x, EXCHANGE_BODY); /* after a resume, the daemon repeats the headers callback */
        return MHD_YES;
    case EXCHANGE_CUT:
    case EXCHANGE_STOPPED:
        return MHD_NO;
    default:
        break;
    }
    if (x->state == EXCHANGE_ANSWERED)
        return send_reply(x);
    if (x->state == EXCHANGE_WORKING || x->state == EXCHANGE_POLLED)
        wait_for_reply(x);
    return MHD_YES;
}

/* ---- on the loop ---- */

static void on_ready(struct watch *w, uint32_t events)
{
    (void)events;
    container_of(w, struct http, watch)->run_needed = true;
}

/* uri_parse decodes the target, because an escaped slash must stay inside its segment. */
static size_t no_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

static void on_daemon_log(void *cls, const char *fmt, va_list args)
{
    (void)cls;
    char line[256];
    vsnprintf(line, sizeof line, fmt, args);
    line[strcspn(line, "\n")] = '\0';
    log_event(LOG_DEBUG, "http", "%s", line);
}

/* TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only. */
static const char priorities[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-AES-128-CBC:"
                                 "-AES-256-CBC:%SERVER_PRECEDENCE";

struct http *daemon_open(struct loop *loop, int fd, const struct http_app *app)
{
    const struct config *config = loop->config;
    struct http *h = memory_zero(1, sizeof *h);
    h->loop = loop;
    h->app = app;
    unsigned idle_s = (unsigned)((config->idle_timeout_ms + 999) / 1000);
    const bool tls = tls_is_on();
    struct MHD_OptionItem tls_options[] = {
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)priorities },
        { MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)peer_certificate },
        { MHD_OPTION_END, 0, NULL },
    };
    h->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL,
        on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_log, h, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(config->max_connections + SPARE_CONNECTIONS),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)config->max_header_bytes + PARSED_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
        MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, peer_notify, h, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        tls ? tls_options : tls_options + 2, MHD_OPTION_END);
    if (!h->mhd) {
        free(h);
        return NULL;
    }
    h->watch.fd = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    h->watch.ready = on_ready;
    loop_watch(loop, &h->watch, EPOLLIN);
    return h;
}

int64_t daemon_wait_us(struct http *h)
{
    unsigned MHD_LONG_LONG ms;
    if (h->run_needed)
        return 0;
    if (MHD_get_timeout(h->mhd, &ms) != MHD_YES)
        return -1;
    if (ms == 0 && h->polled)
        return POLL_WINDOW_US; /* because of the polled exchanges: their replies wake the loop */
    if (ms == 0)
        h->run_needed = true;
    return ms > 1000 ? 1000000 : (int64_t)ms * 1000;
}

void daemon_run(struct http *h)
{
    unsigned MHD_LONG_LONG ms;
    bool due = h->polled ? h->loop->now_us - h->ran_us >= POLL_WINDOW_US
                         : MHD_get_timeout(h->mhd, &ms) == MHD_YES && ms == 0;
    if (!h->run_needed && !due)
        return;
    h->run_needed = false;
    h->ran_us = h->loop->now_us;
    MHD_run(h->mhd);
}

void daemon_drain(struct http *h)
{
    h->draining = true;
    int fd = MHD_quiesce_daemon(h->mhd);
    if (fd >= 0)
        close(fd);
}

int daemon_in_flight(const struct http *h)
{
    return h->in_flight;
}

int daemon_working(const struct http *h)
{
    return h->working;
}

int64_t daemon_requests(const struct http *h)
{
    return h->begun;
}

void daemon_abandon(struct http *h)
{
    h->abandoned = true;
    /* Cancelling one may end others, so restart at the head. The list is sorted by serial, newest first. */
    int64_t last = INT64_MAX;
    for (struct exchange *x = h->first; x;) {
        if (x->serial >= last) {
            x = x->next;
            continue;
        }
        last = x->serial;
        (void)task_cancel(x->task, ERR_SHUTTING_DOWN, true);
        x = h->first;
    }
}

void daemon_stop(struct http *h)
{
    for (struct exchange *x = h->first; x; x = x->next) {
        x->stream.failed = true;
        if (exchange_is_suspended(x))
            exchange_stop(x);
    }
    loop_watch(h->loop, &h->watch, 0);
    MHD_stop_daemon(h->mhd);
    loop_timer_off(h->loop, &h->trim);
    loop_timer_off(h->loop, &h->sweep);
    gate_thread_end(h->loop);
}

void daemon_close(struct http *h)
{
    free(h);
}

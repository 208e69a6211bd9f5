/* The HTTP edge of one loop: libmicrohttpd's callbacks become calls, and answers go back. */
#include "server/http/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "db/db.h"
#include "server/config.h"
#include "server/http/auth.h"
#include "server/http/clients.h"
#include "server/http/dispatch.h"
#include "server/http/exchange.h"
#include "server/http/route.h"
#include "server/http/spool.h"
#include "server/log.h"
#include "server/metrics.h"

enum {
    SPARE_CONNECTIONS = 64,        /* above the limit, so that they can be told */
    OVERTIME_US = 2 * 1000 * 1000, /* for a write whose time is up: its own time-out in the server ends it */
    /* To suspend and resume a connection costs two epoll_ctl and a recv, a sixth of a short request, and most
     * answers come within a turn or two: so the daemon asks for an answer this often before the connection is
     * suspended, and at the latest after this time. A shorter one than the kernel's own tick would make it
     * set the hardware's timer twice a request. */
    MOST_LOOKS = 16,
    PATIENCE_US = 5000,
    READ_ON_BYTES = 4 << 20, /* so far beyond its limit a body is read, for its client to see the answer */
};

static struct exchange *exchange_of(struct call *c)
{
    return container_of(c, struct exchange, call);
}

/* ---- the life of an exchange ---- */

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct http *h = cls;
    struct exchange *x = calloc(1, sizeof *x);
    x->http = h;
    x->connection = connection;
    x->call.loop = h->loop;
    x->target = arena_text(&x->call.arena, target);
    x->start_us = loop_clock_us();
    return x;
}

static void list(struct exchange *x)
{
    struct http *h = x->http;
    x->next = h->first;
    if (h->first)
        h->first->prev = x;
    h->first = x;
    x->listed = true;
    h->in_flight++;
}

static void unlist(struct exchange *x)
{
    if (!x->listed)
        return;
    *(x->prev ? &x->prev->next : &x->http->first) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->http->in_flight--;
    x->listed = false;
}

static void set_patient(struct exchange *x, bool patient)
{
    x->http->patient += patient - x->patient;
    x->patient = patient;
}

static void uncount(struct exchange *x)
{
    x->http->working -= x->counted;
    x->counted = false;
}

static void exchange_free(struct exchange *x)
{
    if (!x->completed || x->call.waits)
        return;
    loop_timer_off(x->http->loop, &x->timer);
    unlist(x);
    uncount(x);
    set_patient(x, false);
    if (x->call.auth_waits)
        auth_forget(&x->call);
    db_call_end(&x->call);
    if (x->call.spool)
        spool_close(x->call.spool);
    free(x->stream.data);
    arena_release(&x->call.arena);
    free(x);
}

static void account(struct exchange *x, bool sent)
{
    struct call *c = &x->call;
    if (x->stage < STAGE_BODY)
        return; /* the request line came, the rest did not */
    int64_t us = loop_clock_us() - x->start_us;
    sent |= c->stream && c->error != OK; /* as far as it came: it was not the client that broke it off */
    int status = sent ? c->reply.status : 499; /* 499: the client left before it had the answer */
    metrics_request(x->http->loop->metrics, route_index(c->route), status, us);
    struct log_request line = {
        .method = method_name(c->method),
        .route = c->route ? c->route->path : c->uri.path,
        .owner = c->owner && c->owner[0] ? c->owner : NULL,
        .request_id = c->request_id,
        .trace_id = c->trace_id,
        .status = status,
        .us = us,
        .bytes_in = x->body_bytes,
        .bytes_out = x->sent_bytes,
        .code = c->error != OK && (sent || x->cut) ? err_code(c->error) : NULL,
    };
    log_request(&line);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode how)
{
    (void)cls;
    (void)connection;
    struct exchange *x = *con_cls;
    *con_cls = NULL;
    if (!x)
        return;
    x->http->wanted = true; /* the next request may be there already */
    account(x, x->stage == STAGE_SENDING && how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    x->completed = true;
    if (x->call.waits)
        stream_gone(x); /* lets the coroutine end, and with it the exchange */
    else
        exchange_free(x);
}

void exchange_finished(struct call *c)
{
    struct exchange *x = exchange_of(c);
    c->waits = false;
    uncount(x);
    exchange_free(x);
}

void exchange_resume(struct exchange *x)
{
    x->http->wanted = true;
    if (!x->suspended)
        return;
    x->suspended = false;
    MHD_resume_connection(x->connection);
}

void exchange_answered(struct call *c)
{
    struct exchange *x = exchange_of(c);
    loop_timer_off(x->http->loop, &x->timer);
    if (!c->stream || !c->route->lines) /* whose work begins with its answer */
        uncount(x);
    x->stage = STAGE_ANSWERED;
    exchange_resume(x);
}

/* Ends the waiting of a call early. False: a write is under way, and its outcome will be known. */
static bool wake(struct call *c, enum err why, bool even_writes)
{
    if (c->wait) {
        struct call_wait *w = c->wait;
        w->give_up(w);
        call_wake(w, why);
        return true;
    }
    if (!c->auth_waits)
        return db_call_wake(c, why, even_writes);
    auth_forget(c);
    call_answer(c, why);
    return true;
}

static void on_time_up(struct timer *t)
{
    struct exchange *x = container_of(t, struct exchange, timer);
    if (x->stage == STAGE_BODY) {
        x->call.error = ERR_BODY_TIMEOUT;
        x->cut = true; /* the daemon takes no answer in the middle of a body */
        /* When nothing more comes, it is closed as idle. */
        MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
        return;
    }
    if ((x->stage != STAGE_WORK && x->stage != STAGE_KEY) || wake(&x->call, ERR_REQUEST_TIMEOUT, x->overtime))
        return;
    x->overtime = true;
    loop_timer(x->http->loop, t, OVERTIME_US);
}

/* ---- reading ---- */

/* What needs no database is always answered: that is how an overload is seen. */
static bool overloaded(const struct exchange *x)
{
    return x->call.route && x->call.route->role != ROLE_PUBLIC &&
           x->http->working >= x->http->loop->config->max_in_flight;
}

static enum err admit(struct exchange *x)
{
    struct http *h = x->http;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const struct client *client = info ? info->socket_context : NULL;
    if (client && client_verdict(client) != OK) {
        x->call.reply.close = true;
        return client_verdict(client);
    }
    if (h->draining) {
        x->call.reply.close = true;
        return ERR_SHUTTING_DOWN;
    }
    if (overloaded(x))
        return ERR_OVERLOADED;
    info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info && info->header_size > (size_t)h->loop->config->max_header_bytes) {
        x->call.reply.close = true;
        return problem_set(&x->call.problem, ERR_HEADER_TOO_LARGE, "the limit is %lld bytes",
                           (long long)h->loop->config->max_header_bytes);
    }
    return OK;
}

static void start_timer(struct exchange *x)
{
    const int64_t ms =
        x->stage == STAGE_WORK ? call_limit_ms(&x->call) : x->http->loop->config->request_timeout_ms;
    loop_timer(x->http->loop, &x->timer, ms * 1000);
}

/* There is always room for one that is alone. */
static int64_t most_spooled(const struct config *config)
{
    return config->max_spool_bytes > config->max_bulk_bytes ? config->max_spool_bytes
                                                            : config->max_bulk_bytes;
}

static void key_known(struct call *c, enum err err)
{
    struct exchange *x = exchange_of(c);
    if (err == OK) {
        c->spool = arena_alloc(&c->arena, sizeof *c->spool);
        err = spool_open(c->spool, most_spooled(c->loop->config));
    }
    if (err != OK) {
        call_answer(c, err);
        return;
    }
    x->stage = x->suspended ? STAGE_KEY_KNOWN : STAGE_BODY;
    exchange_resume(x);
}

/* Before a large body is read: nobody fills the disk with a key that is none. */
static void find_key(struct exchange *x)
{
    x->stage = STAGE_KEY;
    auth_check(&x->call, key_known);
}

/* An answer before the end of the body closes the connection, and a client that is still writing may see that
 * instead of the answer. */
static bool reads_on(const struct exchange *x)
{
    const struct call *c = &x->call;
    if (!call_has_body(c) || c->headers.expect || c->reply.close)
        return false;
    const char *length = c->headers.content_length;
    return !length || strtoull(length, NULL, 10) <= call_body_limit(c) + READ_ON_BYTES;
}

static void begin(struct exchange *x, const char *method)
{
    struct call *c = &x->call;
    headers_read(x);
    x->stage = STAGE_BODY;
    x->http->begun++;
    list(x);
    x->timer.fire = on_time_up;
    start_timer(x);
    enum err err = call_begin(c, x->target, method);
    enum err refused = admit(x); /* after call_begin, which makes the request id, but before its verdict */
    if (refused == OK && err != OK && reads_on(x))
        x->refused = err;
    else if (refused != OK || err != OK)
        call_answer(c, refused != OK ? refused : err);
    else if (c->reply.status) /* OPTIONS */
        call_answer(c, OK);
    else if (c->route->lines && call_has_body(c))
        find_key(x);
}

static enum err keep_body(struct exchange *x, const char *data, size_t size)
{
    struct call *c = &x->call;
    size_t most = call_body_limit(c);
    if (x->body_bytes > most)
        return problem_set(&c->problem, ERR_BODY_TOO_LARGE, "the limit is %zu bytes", most);
    if (c->spool)
        return spool_add(c->spool, data, size);
    buf_add(&c->body, data, size);
    return OK;
}

static enum MHD_Result take_body(struct exchange *x, const char *data, size_t *size)
{
    struct call *c = &x->call;
    x->http->wanted = true; /* more of it may be there already */
    x->body_bytes += *size;
    if (x->cut || x->body_bytes > call_body_limit(c) + READ_ON_BYTES)
        return MHD_NO;
    if (c->spool)
        start_timer(x); /* it may take long, as long as it comes */
    if (x->refused == OK)
        x->refused = keep_body(x, data, *size);
    if (x->refused != OK && c->spool)
        spool_close(c->spool);
    *size = 0;
    return MHD_YES;
}

static void work(struct exchange *x)
{
    struct call *c = &x->call;
    x->stage = STAGE_WORK;
    if (x->refused != OK) {
        call_answer(c, x->refused);
        return;
    }
    if (overloaded(x)) { /* others were faster with their bodies */
        call_answer(c, ERR_OVERLOADED);
        return;
    }
    x->counted = true;
    x->http->working++;
    start_timer(x);
    call_run(c);
}

/* ---- answering ---- */

static enum MHD_Result send_answer(struct exchange *x)
{
    struct reply *reply = &x->call.reply;
    struct MHD_Response *r =
        x->call.stream && x->call.method != HEAD
            ? stream_response(x)
            : MHD_create_response_from_buffer(reply->body.len, reply->body.data, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    headers_add(x, r);
    if (!x->call.stream)
        x->sent_bytes = reply->body.len;
    x->stage = STAGE_SENDING;
    x->http->wanted = true; /* to complete it */
    enum MHD_Result ok = MHD_queue_response(x->connection, (unsigned)reply->status, r);
    MHD_destroy_response(r);
    return ok;
}

static bool is_patient(struct exchange *x)
{
    return x->stage == STAGE_WORK && !x->call.waits && x->looks++ < MOST_LOOKS &&
           x->http->loop->now_us - x->start_us < PATIENCE_US;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **con_cls)
{
    (void)cls;
    (void)connection;
    (void)url;
    (void)version;
    struct exchange *x = *con_cls;
    switch (x->stage) {
    case STAGE_HEADERS:
        begin(x, method);
        if (!call_has_body(&x->call))
            return MHD_YES; /* an answer given now would cost the client its connection; the next call comes
                               at once */
        break;
    case STAGE_BODY:
        if (*size)
            return take_body(x, data, size);
        work(x);
        break;
    case STAGE_KEY_KNOWN:
        x->stage = STAGE_BODY; /* resumed, the daemon comes with the headers again */
        return MHD_YES;
    case STAGE_KEY:
    case STAGE_WORK:
    case STAGE_ANSWERED:
    case STAGE_SENDING:
        break;
    }
    set_patient(x, is_patient(x));
    if (x->stage == STAGE_ANSWERED)
        return send_answer(x);
    if ((x->stage == STAGE_WORK || x->stage == STAGE_KEY) && !x->suspended && !x->patient) {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
    }
    return MHD_YES;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *h = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        clients_remove(*socket_context);
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *socket_context = clients_add(info ? info->client_addr : NULL, h->loop->config->max_connections,
                                  h->loop->config->max_connections_per_address);
}

/* ---- on the loop ---- */

static void on_ready(struct watch *w, uint32_t events)
{
    (void)events;
    container_of(w, struct http, watch)->wanted = true;
}

/* The target is decoded by uri_parse, which keeps an escaped slash inside its segment. */
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

struct http *http_open(struct loop *loop, int fd)
{
    const struct config *config = loop->config;
    struct http *h = calloc(1, sizeof *h);
    h->loop = loop;
    h->listen_fd = fd;
    unsigned idle_s = (unsigned)((config->idle_timeout_ms + 999) / 1000);
    h->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, h,
        MHD_OPTION_EXTERNAL_LOGGER, on_daemon_log, h, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(config->max_connections + SPARE_CONNECTIONS),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)config->max_header_bytes + 8192,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
        MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!h->mhd) {
        free(h);
        return NULL;
    }
    h->watch.fd = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    h->watch.ready = on_ready;
    loop_watch(loop, &h->watch, EPOLLIN);
    return h;
}

int64_t http_wait_us(struct http *h)
{
    unsigned MHD_LONG_LONG ms;
    if (h->wanted)
        return 0;
    if (MHD_get_timeout(h->mhd, &ms) != MHD_YES)
        return -1;
    if (ms == 0 && h->patient)
        return PATIENCE_US; /* it asks because of those, and their answers wake the loop; whoever else has
                               more to do at once says so himself (`wanted`) */
    if (ms == 0)
        h->wanted = true;
    return ms > 1000 ? 1000000 : (int64_t)ms * 1000;
}

void http_run(struct http *h)
{
    unsigned MHD_LONG_LONG ms;
    bool due = h->patient ? h->loop->now_us - h->ran_us >= PATIENCE_US
                          : MHD_get_timeout(h->mhd, &ms) == MHD_YES && ms == 0;
    if (!h->wanted && !due)
        return;
    h->wanted = false;
    h->ran_us = h->loop->now_us;
    MHD_run(h->mhd);
}

void http_drain(struct http *h)
{
    h->draining = true;
    quiet_end(h);
    int fd = MHD_quiesce_daemon(h->mhd);
    if (fd >= 0)
        close(fd);
    h->listen_fd = -1;
}

int http_in_flight(const struct http *h)
{
    return h->in_flight;
}

/* Ends what it waits for; one that streams can still say where it stopped. */
static bool tell(struct exchange *x)
{
    if (x->told || x->stage == STAGE_BODY)
        return false;
    x->told = true;
    if (!wake(&x->call, ERR_SHUTTING_DOWN, true))
        exchange_wake(x);
    return true;
}

void http_abandon(struct http *h)
{
    h->abandoned = true;
    /* Telling one may end others; start over until all are told. */
    for (struct exchange *x = h->first; x;)
        x = tell(x) ? h->first : x->next;
}

void http_stop(struct http *h)
{
    for (struct exchange *x = h->first; x; x = x->next) {
        x->stream.failed = true;
        exchange_resume(x);
    }
    loop_watch(h->loop, &h->watch, 0);
    MHD_stop_daemon(h->mhd);
}

void http_close(struct http *h)
{
    free(h);
}

/* HTTP requests to other servers on the event loop, with libcurl. */
#include "server/remote/remote.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/memory.h"

enum {
    CONNECT_MS = 10000,
    EVENTS_A_TURN = 64,
    MAX_IDLE = 64, /* idle connections for reuse */
};

/* A wait of a task, listed so that remote_close can cancel it. */
struct pending {
    struct task_wait wait;
    struct remote *remote;
    struct pending *prev, *next;
};

struct remote {
    struct loop *loop;
    CURLM *multi;
    /* libcurl's descriptors have their own epoll, which the loop watches. libcurl may close a descriptor and
     * get the same number again within a turn, while the loop still has events of the old one. */
    struct watch watch;
    struct timer timer;
    struct pending *first;
    bool closing;
    uint32_t random;
    const char *ca_file; /* NULL: the system's default */
};

struct transfer {
    struct pending pending;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    bool too_large;
    CURLcode code;
};

struct pause {
    struct pending pending;
    struct timer timer;
};

/* ---- waits ---- */

static enum err wait_for(struct task *t, struct pending *p,
                         bool (*give_up)(struct task_wait *w, enum err *why, bool even_writes))
{
    struct remote *r = t->loop->remote;
    p->remote = r;
    p->prev = NULL;
    p->next = r->first;
    if (r->first)
        r->first->prev = p;
    r->first = p;
    p->wait.give_up = give_up;
    p->wait.elsewhere = true;
    enum err err = task_wait(t, &p->wait);
    *(p->prev ? &p->prev->next : &r->first) = p->next;
    if (p->next)
        p->next->prev = p->prev;
    return err;
}

static bool is_closed(const struct remote *r)
{
    return !r || r->closing;
}

static void pause_over(struct timer *t)
{
    task_wake(&container_of(t, struct pause, timer)->pending.wait, OK);
}

static bool pause_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct pause *p = container_of(w, struct pause, pending.wait);
    loop_timer_off(w->task->loop, &p->timer);
    return true;
}

enum err remote_pause(struct task *t, int64_t ms)
{
    struct pause p = { .timer.fire = pause_over };
    TRY(task_can_wait(t));
    if (is_closed(t->loop->remote))
        return ERR_SHUTTING_DOWN;
    loop_timer(t->loop, &p.timer, ms * 1000);
    return wait_for(t, &p.pending, pause_give_up);
}

uint32_t remote_random(struct remote *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 17;
    r->random ^= r->random << 5;
    return r->random;
}

/* ---- one request ---- */

static size_t on_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct transfer *t = user;
    size_t len = size * count;
    if (t->body.len + len > REMOTE_MAX_BYTES) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    buf_add(&t->body, bytes, len);
    return len;
}

static void add_header(struct transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (!longer)
        memory_exhausted(strlen(line));
    t->headers = longer;
}

static void prepare(struct transfer *t, const struct remote *r, const struct remote_request *request)
{
    CURL *e = t->easy;
    add_header(t, "Content-Type: application/json");
    add_header(t, "Accept: application/json");
    add_header(t, "Expect:"); /* no 100-continue: it would delay the body by a second */
    for (const char *const *h = request->headers; h && *h; h++)
        add_header(t, *h);
    curl_easy_setopt(e, CURLOPT_URL, request->url);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "daybook/" DAYBOOK_VERSION);
    curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    curl_easy_setopt(e, CURLOPT_POSTFIELDS, request->body);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    if (r->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, r->ca_file);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a pending name lookup at close */
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)request->limit_ms);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(request->limit_ms < CONNECT_MS ? request->limit_ms : CONNECT_MS));
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L); /* a model may be silent for a long time */
    curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)REMOTE_MAX_BYTES);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
}

/* libcurl's codes as outcomes. All others are REMOTE_BROKEN. */
static const struct {
    CURLcode code;
    enum remote_outcome outcome;
} outcomes[] = {
    { CURLE_OK, REMOTE_ANSWERED },
    { CURLE_COULDNT_RESOLVE_HOST, REMOTE_UNREACHABLE },
    { CURLE_COULDNT_RESOLVE_PROXY, REMOTE_UNREACHABLE },
    { CURLE_COULDNT_CONNECT, REMOTE_UNREACHABLE },
    { CURLE_SSL_CONNECT_ERROR, REMOTE_LOST },
    { CURLE_GOT_NOTHING, REMOTE_LOST },
    { CURLE_SEND_ERROR, REMOTE_LOST },
    { CURLE_RECV_ERROR, REMOTE_LOST },
    { CURLE_PARTIAL_FILE, REMOTE_LOST },
    { CURLE_OPERATION_TIMEDOUT, REMOTE_TIMEOUT },
    { CURLE_FILESIZE_EXCEEDED, REMOTE_TOO_LARGE },
};

static enum remote_outcome outcome_of(const struct transfer *t)
{
    curl_off_t ready_us = 0; /* when the connection was ready; 0: never */
    curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
    if (t->too_large)
        return REMOTE_TOO_LARGE;
    if (t->code == CURLE_OPERATION_TIMEDOUT && !ready_us)
        return REMOTE_UNREACHABLE;
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (outcomes[i].code == t->code)
            return outcomes[i].outcome;
    return REMOTE_BROKEN;
}

static void read_result(struct transfer *t, struct remote_answer *answer)
{
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    *answer = (struct remote_answer){
        .outcome = outcome_of(t),
        .status = (int)status,
        .retry_after_ms = retry_after_s > 0 ? (int64_t)retry_after_s * 1000 : -1,
        .why = t->too_large ? "the response is too large" : curl_easy_strerror(t->code),
    };
    buf_string(&t->body);
    answer->body = t->body.data;
    answer->len = t->body.len;
}

static bool transfer_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct transfer *t = container_of(w, struct transfer, pending.wait);
    curl_multi_remove_handle(t->pending.remote->multi, t->easy);
    return true;
}

enum err remote_post(struct task *t, const struct remote_request *request, struct remote_answer *answer)
{
    struct remote *r = t->loop->remote;
    TRY(task_can_wait(t));
    if (is_closed(r))
        return ERR_SHUTTING_DOWN;
    struct transfer transfer = { .easy = curl_easy_init(),
                                 .body.arena = request->arena ? request->arena : t->arena };
    if (!transfer.easy)
        return ERR_INTERNAL;
    prepare(&transfer, r, request);
    curl_multi_add_handle(r->multi, transfer.easy);
    enum err err = wait_for(t, &transfer.pending, transfer_give_up);
    if (err == OK)
        read_result(&transfer, answer);
    curl_easy_cleanup(transfer.easy);
    curl_slist_free_all(transfer.headers);
    return err;
}

/* ---- on the loop ---- */

/* Must run outside of libcurl's callbacks, because a woken task may start a new request at once. */
static void wake_finished(struct remote *r)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(r->multi, &left))) {
        struct transfer *t = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        t->code = message->data.result;
        curl_multi_remove_handle(r->multi, t->easy);
        task_wake(&t->pending.wait, OK);
    }
}

static void on_ready(struct watch *w, uint32_t ignored)
{
    (void)ignored;
    struct remote *r = container_of(w, struct remote, watch);
    struct epoll_event events[EVENTS_A_TURN];
    int running, n = epoll_wait(w->fd, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < n; i++) {
        uint32_t e = events[i].events;
        int what = (e & (EPOLLIN | EPOLLERR | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (e & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? CURL_CSELECT_OUT : 0);
        curl_multi_socket_action(r->multi, events[i].data.fd, what, &running);
    }
    wake_finished(r);
}

static void on_time(struct timer *t)
{
    struct remote *r = container_of(t, struct remote, timer);
    int running;
    curl_multi_socket_action(r->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    wake_finished(r);
}

static int set_timer(CURLM *multi, long ms, void *user)
{
    (void)multi;
    struct remote *r = user;
    if (ms < 0)
        loop_timer_off(r->loop, &r->timer);
    else
        loop_timer(r->loop, &r->timer, ms ? (int64_t)ms * 1000 : 1); /* 0 means now: fire in the next turn */
    return 0;
}

/* After a descriptor was closed and reopened, the kernel and libcurl may disagree on whether it is
 * registered. So try both operations. */
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known)
{
    (void)easy;
    struct remote *r = user;
    struct epoll_event e = { .data.fd = fd };
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(r->watch.fd, EPOLL_CTL_DEL, fd, &e);
        return 0;
    }
    e.events =
        (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) | (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    int op = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(r->watch.fd, op, fd, &e) != 0)
        epoll_ctl(r->watch.fd, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &e);
    curl_multi_assign(r->multi, fd, r);
    return 0;
}

bool remote_setup(void)
{
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, memory_alloc, free, memory_resize, memory_text,
                                memory_zero) == CURLE_OK;
}

void remote_teardown(void)
{
    curl_global_cleanup();
}

struct remote *remote_open(struct loop *loop)
{
    struct remote *r = memory_zero(1, sizeof *r);
    r->loop = loop;
    r->random = (uint32_t)loop_clock_us() | 1;
    r->timer.fire = on_time;
    r->watch.ready = on_ready;
    r->watch.fd = epoll_create1(EPOLL_CLOEXEC);
    r->multi = curl_multi_init();
    if (r->watch.fd < 0 || !r->multi) {
        if (r->watch.fd >= 0)
            close(r->watch.fd);
        curl_multi_cleanup(r->multi);
        free(r);
        return NULL;
    }
    const char *ca_file = getenv("SSL_CERT_FILE"); /* like the curl command, for private CAs */
    r->ca_file = ca_file && *ca_file ? ca_file : NULL;
    curl_multi_setopt(r->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(r->multi, CURLMOPT_SOCKETDATA, r);
    curl_multi_setopt(r->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(r->multi, CURLMOPT_TIMERDATA, r);
    curl_multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, (long)MAX_IDLE);
    loop_watch(loop, &r->watch, EPOLLIN);
    return r;
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    r->closing = true;
    while (r->first)
        (void)task_cancel(r->first->wait.task, ERR_SHUTTING_DOWN, true);
    curl_multi_cleanup(r->multi);
    loop_timer_off(r->loop, &r->timer);
    loop_watch(r->loop, &r->watch, 0);
    close(r->watch.fd);
    free(r);
}

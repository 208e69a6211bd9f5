/* Starts the event loops, and stops them on a signal. */
#include "server/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "db/db.h"
#include "server/backfill.h"
#include "server/coro.h"
#include "server/descriptors.h"
#include "server/dispatch/auth.h"
#include "server/dispatch/dispatch.h"
#include "server/dispatch/route.h"
#include "server/embed_worker.h"
#include "server/http/address.h"
#include "server/http/daemon.h"
#include "server/http/proxies.h"
#include "server/http/tls.h"
#include "server/json/tree.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/remote/remote_embedder.h"
#include "server/remote/llm.h"
#include "server/remote/remote.h"
#include "server/remote/remote_check.h"
#include "server/sealer.h"
#include "server/worker.h"

enum {
    BACKLOG = 1024,
    MAX_LOOPS = 64,
    READY_LIMIT_S = 5,
    DAY_S = 86400,
    URL_SIZE = 64,
    DATABASE_SIZE = 1024
};

/* A loop and its thread. */
struct loop_thread {
    struct loop loop;
    pthread_t thread;
    struct watch stop; /* an eventfd: another thread stops the loop */
    bool stopping;
    int listen_fd;
    const char *database_url;
    struct db_share share;
};

/* ---- listening ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int listen_socket(const struct sockaddr *address, socklen_t len, bool shared)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, address, len) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* One socket per loop on the same port (SO_REUSEPORT); the kernel distributes the connections. */
static bool listen_all(const struct config *config, bool has_keys, struct loop_thread *threads, int count,
                       char url[static URL_SIZE])
{
    struct addrinfo *found = address_resolve(config->listen);
    if (!found)
        return false;
    struct sockaddr_storage address = { 0 };
    socklen_t len = found->ai_addrlen;
    memcpy(&address, found->ai_addr, len);
    freeaddrinfo(found);
    struct sockaddr *a = (struct sockaddr *)&address;
    if (!has_keys && !is_loopback(a)) {
        char database[DATABASE_SIZE];
        return log_failure(
            "--listen %s: without an API key only loopback is served; create one with: daybookd "
            "key create --owner NAME --role agent%s",
            config->listen, config_database_option(config, database, sizeof database));
    }
    /* SO_REUSEPORT would also share the port with another daybookd of the same user. So try to bind without
     * it first. */
    int probe = listen_socket(a, len, false);
    if (probe >= 0)
        close(probe);
    for (int i = 0; probe >= 0 && i < count; i++) {
        threads[i].listen_fd = listen_socket(a, len, true);
        if (threads[i].listen_fd < 0) {
            probe = -1;
            break;
        }
        getsockname(threads[i].listen_fd, a, &len); /* replaces port 0 by the real port for the other loops */
    }
    if (probe < 0) {
        fprintf(stderr, "daybookd: cannot listen on %s: %s\n", config->listen,
                errno == EADDRINUSE ? "the port is in use by another program" : strerror(errno));
        return false;
    }
    char host[INET6_ADDRSTRLEN + 2] = "", port[8] = "";
    getnameinfo(a, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(url, URL_SIZE, a->sa_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s",
             tls_is_on() ? "https" : "http", host, port);
    return true;
}

/* ---- one loop ---- */

static sem_t loops_ready; /* each loop posts it once, when it can serve */

static void on_stop(struct watch *w, uint32_t events)
{
    (void)events;
    struct loop_thread *thread = container_of(w, struct loop_thread, stop);
    thread->stopping = true;
    loop_watch(&thread->loop, w, 0);
}

static void turn(struct loop *l, int64_t max_us)
{
    int64_t wait = daemon_wait_us(l->http);
    loop_turn(l, wait < 0 || (max_us >= 0 && max_us < wait) ? max_us : wait);
    daemon_run(l->http);
    db_flush(l->db);
    db_publish(l->db, auth_ready(l->auth));
    metrics_observe(l->metrics);
    log_flush();
}

static void drain(struct loop *l)
{
    daemon_drain(l->http);
    int64_t until = l->now_us + l->config->stop_timeout_ms * 1000;
    while (daemon_in_flight(l->http) && l->now_us < until)
        turn(l, 50 * 1000);
    if (!daemon_in_flight(l->http))
        return;
    log_event(LOG_WARN, "stop", "%d requests did not finish before the stop time-out",
              daemon_in_flight(l->http));
    daemon_abandon(l->http);
    for (int i = 0; i < 20 && daemon_in_flight(l->http); i++)
        turn(l, 10 * 1000);
}

/* Opens the model client, the embedder and the worker, as far as they are configured. */
static bool remotes_open(struct loop *l)
{
    l->llm = llm_open(l);
    l->embedder = remote_embedder_open(l);
    if (remote_check_configured(l->config))
        l->remote = remote_open(l);
    l->worker = worker_open(l);
    if (l->worker && !l->embedder)
        l->embed_worker = embed_worker_open(l);
    return l->worker && (l->remote || !remote_check_configured(l->config)) &&
           (l->embed_worker || l->embedder);
}

/* Cancels all waits for them; no new ones can start. */
static void remotes_stop(struct loop *l)
{
    remote_close(l->remote);
    l->remote = NULL;
    worker_close(l->worker);
    l->worker = NULL;
    if (l->embed_worker)
        embed_worker_close(l->embed_worker);
    l->embed_worker = NULL;
}

static void remotes_close(struct loop *l)
{
    llm_close(l->llm);
    remote_embedder_close(l->embedder);
}

static void *work(void *arg)
{
    struct loop_thread *w = arg;
    struct loop *l = &w->loop;
    loop_watch(l, &w->stop, EPOLLIN);
    bool ready = false;
    while (!w->stopping) {
        turn(l, -1);
        if (!ready && db_ready(l->db) && auth_ready(l->auth)) {
            ready = true;
            sem_post(&loops_ready);
        }
    }
    backfill_stop(l);
    sealer_stop(l);
    drain(l);
    daemon_stop(l->http);
    remotes_stop(l);
    db_close(l->db); /* cancels all waits for the database: calls, and the key load of auth */
    auth_close(l->auth);
    remotes_close(l);
    daemon_close(l->http);
    coro_release_spares();
    arena_thread_end();
    log_flush();
    return NULL;
}

static bool loop_thread_open(struct loop_thread *w, int index, const struct config *config)
{
    w->loop.index = index;
    w->loop.config = config;
    w->stop.ready = on_stop;
    w->stop.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->stop.fd < 0 || !loop_open(&w->loop))
        return false;
    w->loop.metrics = metrics_open(&w->loop);
    w->loop.db = db_open(&w->loop, w->database_url, w->share);
    if (!w->loop.db)
        return false;
    w->loop.auth = auth_open(&w->loop);
    w->loop.http = daemon_open(&w->loop, w->listen_fd, &dispatch_app);
    return w->loop.http && remotes_open(&w->loop) &&
           (index > 0 || (backfill_open(&w->loop) && sealer_open(&w->loop)));
}

/* ---- all loops ---- */

static void print_hints(const char *url)
{
    printf("\nTry:\n"
           "  curl %s/health/ready\n"
           "  curl -X POST %s/v1/lessons -H 'Content-Type: application/json' -d '{\"takeaway\":\"Shrink "
           "macro probabilities by 15%%.\","
           "\"context\":\"40 macro "
           "calls\",\"outcome\":\"over-confident\",\"tags\":[\"calibration\"],\"evidence\":[\"log:40\"]}'\n"
           "  curl '%s/v1/lessons/block?tags=calibration'\n"
           "The API is described at %s/docs\n",
           url, url, url, url);
}

/* So that the URL is printed when requests can be served. Gives up after READY_LIMIT_S if the database is
 * down. */
static void wait_until_ready(int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += READY_LIMIT_S;
    for (int i = 0; i < count; i++)
        while (sem_timedwait(&loops_ready, &until) != 0)
            if (errno != EINTR)
                return;
}

/* Blocks until SIGTERM or SIGINT, and reloads on SIGHUP. The signals are blocked in all threads, so only this
 * call receives them. */
static void wait_for_stop(const sigset_t *set)
{
    const struct timespec day = { .tv_sec = DAY_S };
    int which = 0;
    while (which != SIGTERM && which != SIGINT) {
        which = sigtimedwait(set, NULL, &day);
        if (which == SIGHUP)
            tls_reload();
        else if (which < 0 && errno == EAGAIN)
            tls_check_expiry();
    }
    log_event(LOG_INFO, "stop", "signal=%s", which == SIGINT ? "INT" : "TERM");
}

int serve_loop_count(const struct config *config)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (config->loops)
        return (int)config->loops;
    return (int)(cores < 1 ? 1 : cores > MAX_LOOPS ? MAX_LOOPS : cores);
}

bool serve_check(const struct config *config)
{
    struct db_share share;
    struct addrinfo *found = address_resolve(config->listen);
    if (!found)
        return false;
    freeaddrinfo(found);
    return db_divide(config, serve_loop_count(config), &share) && proxies_read(config->trusted_proxies) &&
           tls_open(config);
}

int serve(const struct config *config, const char *database_url, bool has_keys)
{
    static struct loop_thread threads[MAX_LOOPS];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* let write() fail with EFBIG instead */
    route_init();
    tree_setup();

    const int count = serve_loop_count(config);
    char url[URL_SIZE];
    struct db_share share;
    if (!db_divide(config, count, &share) || !listen_all(config, has_keys, threads, count, url))
        return 1;
    /* Each loop has one more connection, for reads. */
    descriptors_prepare(config, count, count * (1 + share.write + share.slow));
    if (remote_check_configured(config) && !remote_setup()) {
        fprintf(stderr, "daybookd: libcurl cannot start\n");
        return 1;
    }
    for (int i = 0; i < count; i++) {
        threads[i].database_url = database_url;
        threads[i].share = share;
        if (!loop_thread_open(&threads[i], i, config)) {
            fprintf(stderr, "daybookd: an event loop cannot start: %s\n", strerror(errno));
            return 1;
        }
    }
    sem_init(&loops_ready, 0, 0);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i].thread, NULL, work, &threads[i]);
    wait_until_ready(count);
    log_event(LOG_INFO, "serving", "url=%s loops=%d version=%s keys=%s", url, count, DAYBOOK_VERSION,
              has_keys ? "yes" : "no");
    printf("daybook listening on %s\n", url);
    if (config->hints || isatty(STDOUT_FILENO))
        print_hints(url);
    fflush(stdout);

    wait_for_stop(&set);
    for (int i = 0; i < count; i++)
        eventfd_write(threads[i].stop.fd, 1);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i].thread, NULL);
        close(threads[i].stop.fd);
        loop_close(&threads[i].loop);
    }
    backfill_close();
    sealer_close();
    metrics_close();
    tls_close();
    if (remote_check_configured(config))
        remote_teardown();
    log_event(LOG_INFO, "stopped", "all requests are finished");
    log_flush();
    return 0;
}

void serve_print_routes(void)
{
    route_init();
    for (int i = 0; i < route_count(); i++)
        printf("%s %s\n", method_name(route_at(i)->method), route_at(i)->path);
}

/* Starts the private PostgreSQL, restarts it after a crash, and stops it. */
#include "server/embedded_pg/embedded_pg.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/embedded_pg/pg.h"
#include "server/log.h"

enum {
    MIN_CONNECTIONS = 100,
    POLL_MS = 5,
    STILL_STARTING_MS = 10 * 1000,
    STOP_FAST_MS = 30 * 1000,
    STOP_IMMEDIATE_MS = 10 * 1000,
    STABLE_MS = 10 * 1000, /* after this uptime it is restarted without a pause */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 5 * 1000,
    WATCH_MS = 60 * 1000,
    SMALL_SHM_BYTES = 256 << 20,
};

static struct {
    struct pg_folder folder;
    struct pg_install install;
    int connections;
    char url[64 + 3 * PG_SOCKET_PATH], admin_url[64 + 3 * PG_SOCKET_PATH];

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t watcher;
    bool running; /* the watcher thread exists */
    /* protected by the mutex */
    pid_t pid; /* of the postmaster; 0: none */
    bool stopping, tried, up;
} pg = { .folder = { .lock_fd = -1, .log_fd = -1, .data_fd = -1 },
         .mutex = PTHREAD_MUTEX_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER };

static bool is_stopping(void)
{
    pthread_mutex_lock(&pg.mutex);
    bool stopping = pg.stopping;
    pthread_mutex_unlock(&pg.mutex);
    return stopping;
}

static void make_urls(void)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    char host[3 * PG_SOCKET_PATH], *p = host;
    for (const char *s = pg.folder.socket; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (strchr(plain, c)) {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    *p = 0;
    static const char format[] = "postgresql://%s@/" PG_DATABASE "?host=%s&port=%d";
    snprintf(pg.url, sizeof pg.url, format, PG_ROLE, host, PG_PORT);
    snprintf(pg.admin_url, sizeof pg.admin_url, format, PG_ADMIN, host, PG_PORT);
}

const char *embedded_pg_admin_url(void)
{
    return pg.admin_url;
}

/* ---- start ---- */

/* Parallel index builds allocate from /dev/shm, which is small in a container. */
static bool shm_is_small(void)
{
    struct statvfs fs;
    return statvfs("/dev/shm", &fs) != 0 || (uint64_t)fs.f_blocks * fs.f_frsize < SMALL_SHM_BYTES;
}

static pid_t spawn_postgres(void)
{
    char program[PG_PATH], cluster[PG_PATH], sockets[PG_SOCKET_PATH + 32], port[32], connections[32];
    pg_folder_path(program, pg.install.bin, "postgres");
    pg_folder_path(cluster, pg.folder.inside, "cluster");
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", pg.folder.socket);
    snprintf(port, sizeof port, "port=%d", PG_PORT);
    snprintf(connections, sizeof connections, "max_connections=%d",
             pg.connections > MIN_CONNECTIONS ? pg.connections : MIN_CONNECTIONS);
    const char *const argv[] = { program,
                                 "-D",
                                 cluster,
                                 "-c",
                                 "listen_addresses=",
                                 "-c",
                                 sockets,
                                 "-c",
                                 "unix_socket_permissions=0700",
                                 "-c",
                                 port,
                                 "-c",
                                 connections,
                                 shm_is_small() ? "-c" : NULL,
                                 "max_parallel_maintenance_workers=0",
                                 NULL };
    /* SIGINT is PostgreSQL's fast shutdown. The kernel sends it if the service dies, even by SIGKILL. */
    return pg_spawn(&pg.folder, argv, -1, pg.folder.log_fd, SIGINT);
}

static bool has_ended(pid_t pid, int flags)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | flags) == 0 && info.si_pid == pid;
}

/* Reaps under the mutex: after that, the pid may belong to another process and must not be signalled. */
static int reap(pid_t pid)
{
    int status = 0;
    pthread_mutex_lock(&pg.mutex);
    waitpid(pid, &status, 0);
    pg.pid = 0;
    pg.up = false;
    pthread_cond_broadcast(&pg.changed);
    pthread_mutex_unlock(&pg.mutex);
    return status;
}

/* As PID 1 of a container, this process inherits the orphans of a killed PostgreSQL. */
static void reap_strays(pid_t but)
{
    siginfo_t info = { 0 };
    while (getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid &&
           info.si_pid != but)
        waitpid(info.si_pid, NULL, 0);
}

/* Starts PostgreSQL and waits until it is ready, which may take long after a crash. Returns false if it
 * exits. */
static bool launch(void)
{
    pg_log_rotate(&pg.folder);
    if (!pg_stop_leftovers(pg.folder.cluster, is_stopping) || !pg_folder_clear_socket(&pg.folder))
        return false;
    pthread_mutex_lock(&pg.mutex);
    pid_t pid = pg.stopping ? 0 : spawn_postgres();
    pg.pid = pid > 0 ? pid : 0;
    pthread_mutex_unlock(&pg.mutex);
    if (pid < 0)
        return log_failure("cannot start PostgreSQL: %s", strerror(errno));
    if (pid == 0)
        return false;
    struct pg_status status;
    for (int64_t begin = pg_now_ms(), logged_ms = begin;; pg_sleep_ms(POLL_MS)) {
        if (pg_status_read(pg.folder.cluster, &status) && status.pid == pid && status.ready) {
            reap_strays(pid);
            return true;
        }
        if (has_ended(pid, WNOHANG)) {
            reap(pid);
            return false;
        }
        if (pg_now_ms() - logged_ms > STILL_STARTING_MS) {
            logged_ms = pg_now_ms();
            log_event(LOG_WARN, "postgres_starting", "seconds=%lld", (long long)(logged_ms - begin) / 1000);
        }
    }
}

static bool launch_first(void)
{
    off_t from = lseek(pg.folder.log_fd, 0, SEEK_END);
    bool up = launch();
    if (!up && !is_stopping()) {
        pg_log_print_end(pg.folder.log_fd, from);
        log_failure("PostgreSQL did not start in %s: see its messages above, and in %s", pg.folder.data,
                    pg.folder.log);
    }
    return up;
}

/* ---- the watcher thread, which starts PostgreSQL and restarts it ---- */

/* Waits until the postmaster exits, and rotates its log meanwhile. */
static void watch(pid_t pid)
{
    int fd = pidfd_open(pid, 0);
    while (fd >= 0 && !has_ended(pid, WNOHANG)) {
        poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, WATCH_MS);
        pg_log_rotate(&pg.folder);
        reap_strays(pid);
    }
    if (fd >= 0)
        close(fd);
    else
        has_ended(pid, 0);
}

/* Returns false if the service stops meanwhile. */
static bool wait_unless_stopping(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&pg.mutex);
    while (!pg.stopping && pthread_cond_timedwait(&pg.changed, &pg.mutex, &until) != ETIMEDOUT)
        ;
    bool waited_out = !pg.stopping;
    pthread_mutex_unlock(&pg.mutex);
    return waited_out;
}

static void set_up(bool up)
{
    pthread_mutex_lock(&pg.mutex);
    pg.tried = true;
    pg.up = up;
    pthread_cond_broadcast(&pg.changed);
    pthread_mutex_unlock(&pg.mutex);
}

static bool watch_once(void)
{
    pthread_mutex_lock(&pg.mutex);
    pid_t pid = pg.pid;
    pthread_mutex_unlock(&pg.mutex);
    watch(pid);
    int status = reap(pid);
    if (is_stopping())
        return false;
    log_event(LOG_ERROR, "postgres_died", "%s=%d", WIFSIGNALED(status) ? "signal" : "status",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return true;
}

static int next_backoff(int backoff_ms)
{
    int next = backoff_ms ? backoff_ms * 2 : BACKOFF_FIRST_MS;
    return next < BACKOFF_MAX_MS ? next : BACKOFF_MAX_MS;
}

static void *watcher(void *unused)
{
    (void)unused;
    bool up = launch_first();
    set_up(up);
    int backoff_ms = 0;
    int64_t since = pg_now_ms();
    while (up && watch_once()) {
        if (pg_now_ms() - since > STABLE_MS)
            backoff_ms = 0;
        do {
            if (!wait_unless_stopping(backoff_ms))
                return NULL;
            backoff_ms = next_backoff(backoff_ms);
        } while (!launch());
        since = pg_now_ms();
        set_up(true);
        log_event(LOG_INFO, "postgres_started", "data=\"%s\"", pg.folder.data);
    }
    return NULL;
}

/* Blocks all signals in the watcher, so that the main thread gets them. */
static bool start_watcher(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pg.pid = 0;
    pg.stopping = pg.tried = pg.up = false;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&pg.watcher, NULL, watcher, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why)
        return log_failure("cannot start a thread: %s", strerror(why));
    pg.running = true;
    pthread_mutex_lock(&pg.mutex);
    while (!pg.tried)
        pthread_cond_wait(&pg.changed, &pg.mutex);
    bool up = pg.up;
    pthread_mutex_unlock(&pg.mutex);
    return up;
}

/* ---- API ---- */

/* Call it with the folder locked. */
static bool start_cluster(void)
{
    int version = pg_cluster_version(&pg.folder);
    if (version < 0 || !pg_find(version, pg.folder.data, &pg.install))
        return false;
    if (!version && !pg_cluster_create(&pg.folder, &pg.install))
        return false;
    return pg_roles_update(&pg.folder, &pg.install) && pg_cluster_access(&pg.folder) &&
           pg_folder_socket(&pg.folder) && pg_log_open(&pg.folder) && start_watcher();
}

bool embedded_pg_start(const char *data, int connections, const char **url)
{
    pg.connections = connections;
    if (!pg_folder_open(data, &pg.folder) || !pg_lock(&pg.folder) || !start_cluster()) {
        embedded_pg_stop();
        return false;
    }
    make_urls();
    *url = pg.url;
    return true;
}

bool embedded_pg_join(const char *data, bool create, const char **url)
{
    bool joined;
    if ((!create && !pg_folder_check(data)) || !pg_folder_open(data, &pg.folder) ||
        !pg_lock_or_join(&pg.folder, &joined) || (!joined && !start_cluster())) {
        embedded_pg_stop();
        return false;
    }
    make_urls();
    *url = pg.url;
    return true;
}

/* Signals the postmaster and waits up to `ms`. Returns true if it has exited. */
static bool stop_with(int signal, int ms)
{
    pthread_mutex_lock(&pg.mutex);
    if (pg.pid)
        kill(pg.pid, signal);
    pthread_mutex_unlock(&pg.mutex);
    for (int64_t end = pg_now_ms() + ms; pg_now_ms() < end; pg_sleep_ms(POLL_MS)) {
        pthread_mutex_lock(&pg.mutex);
        bool gone = !pg.pid;
        pthread_mutex_unlock(&pg.mutex);
        if (gone)
            return true;
    }
    return false;
}

void embedded_pg_stop(void)
{
    if (pg.running) {
        pthread_mutex_lock(&pg.mutex);
        pg.stopping = true;
        pthread_cond_broadcast(&pg.changed);
        pthread_mutex_unlock(&pg.mutex);
        if (!stop_with(SIGINT, STOP_FAST_MS) && !stop_with(SIGQUIT, STOP_IMMEDIATE_MS))
            stop_with(SIGKILL, STOP_IMMEDIATE_MS);
        pthread_join(pg.watcher, NULL);
        pg.running = false;
        rmdir(pg.folder.socket);
    }
    pg_folder_close(&pg.folder);
}

/* The lock on the data folder: one service at a time. Other commands use the cluster of the running service.
 */
#include "server/embedded_pg/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "server/log.h"

enum {
    POLL_MS = 5,
    HOLDER_MS =
        100, /* a new holder writes its pid within this time; before that, the file may name the old one */
    WAIT_MS = 60 * 1000,
};

/* Stored in the lock file after the pid. Others wait for a command, which is short, but not for a service. */
#define HOLDER_SERVICE "service"
#define HOLDER_COMMAND "command"

/* Reads the holder of the lock from the file. */
static bool read_holder(const struct pg_folder *f, pid_t *pid, bool *is_service)
{
    char text[64], kind[32] = "";
    int number = 0;
    if (pg_folder_read(f->lock, text, sizeof text) <= 0 || sscanf(text, "%d %31s", &number, kind) != 2)
        return false;
    *pid = number;
    *is_service = strcmp(kind, HOLDER_SERVICE) == 0;
    return true;
}

static bool lock_open(struct pg_folder *f)
{
    if (f->lock_fd >= 0)
        return true;
    f->lock_fd = open(f->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->lock_fd < 0)
        return log_failure("cannot open %s: %s", f->lock, strerror(errno));
    if (f->user.step_down && fchown(f->lock_fd, f->user.uid, f->user.gid) != 0)
        return log_failure("cannot give %s to the user %s: %s", f->lock, f->user.name, strerror(errno));
    return true;
}

enum lock_result { LOCK_TAKEN, LOCK_BUSY, LOCK_FAILED };

static enum lock_result lock_try(struct pg_folder *f, const char *kind)
{
    char text[64];
    if (!lock_open(f))
        return LOCK_FAILED;
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return LOCK_BUSY;
        log_failure("cannot lock %s: %s", f->lock, strerror(errno));
        return LOCK_FAILED;
    }
    int n = snprintf(text, sizeof text, "%d %s\n", (int)getpid(), kind);
    if (ftruncate(f->lock_fd, 0) != 0 || pwrite(f->lock_fd, text, (size_t)n, 0) != n) {
        log_failure("cannot write %s: %s", f->lock, strerror(errno));
        return LOCK_FAILED;
    }
    return LOCK_TAKEN;
}

bool pg_lock(struct pg_folder *f)
{
    for (int64_t begin = pg_now_ms();; pg_sleep_ms(POLL_MS)) {
        pid_t pid = 0;
        bool is_service = false;
        enum lock_result result = lock_try(f, HOLDER_SERVICE);
        if (result != LOCK_BUSY)
            return result == LOCK_TAKEN;
        int64_t waited = pg_now_ms() - begin;
        if (read_holder(f, &pid, &is_service) && (is_service ? waited > HOLDER_MS : waited > WAIT_MS))
            return log_failure("the folder %s is in use by another daybookd (pid %d)", f->data, (int)pid);
        if (waited > WAIT_MS)
            return log_failure("the folder %s is in use by another program", f->data);
    }
}

bool pg_lock_or_join(struct pg_folder *f, bool *joined)
{
    *joined = false;
    for (int64_t begin = pg_now_ms();; pg_sleep_ms(POLL_MS)) {
        pid_t pid = 0;
        bool is_service = false;
        struct pg_status status;
        enum lock_result result = lock_try(f, HOLDER_COMMAND);
        if (result != LOCK_BUSY)
            return result == LOCK_TAKEN;
        int64_t waited = pg_now_ms() - begin;
        if (read_holder(f, &pid, &is_service) && is_service && waited > HOLDER_MS &&
            pg_status_read(f->cluster, &status) && status.ready) {
            strcpy(f->socket, status.socket);
            return *joined = true;
        }
        if (waited > WAIT_MS)
            return log_failure("the folder %s is in use by daybookd (pid %d), whose PostgreSQL is not ready",
                               f->data, (int)pid);
    }
}

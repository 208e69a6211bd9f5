/* Starts, finds and stops the processes of the private PostgreSQL. */
#include "server/embedded_pg/pg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/log.h"

enum {
    STOP_STEP_MS = 20,
    STOP_FAST_MS = 15 * 1000, /* then they get SIGQUIT */
    STOP_MAX_MS = 30 * 1000,
};

int64_t pg_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void pg_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* ---- starting ---- */

static void fail_in_child(const char *what)
{
    /* Only async-signal-safe functions: this is the child of a threaded process. */
    const char *why = strerrordesc_np(errno);
    const char *parts[] = { "daybookd: ", what, ": ", why ? why : "unknown error", "\n" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    }
    _exit(127);
}

static void step_down(const struct pg_user *u)
{
    if (u->step_down && (setgroups((size_t)u->group_count, u->groups) != 0 ||
                         setresgid(u->gid, u->gid, u->gid) != 0 || setresuid(u->uid, u->uid, u->uid) != 0))
        fail_in_child("cannot become the user that runs PostgreSQL");
}

static void child(const struct pg_folder *f, const char *const argv[], int in, int out, int death_signal,
                  pid_t parent)
{
    static const char *const environment[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8",
                                               "TZ=UTC", NULL };
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(127);
    if (f->data_fd >= 0 && f->data_fd != PG_DATA_FD && dup2(f->data_fd, PG_DATA_FD) < 0)
        _exit(127);
    if (f->data_fd == PG_DATA_FD)
        fcntl(PG_DATA_FD, F_SETFD, 0);
    close_range(STDERR_FILENO + 1, PG_DATA_FD - 1, 0);
    close_range(f->data_fd >= 0 ? PG_DATA_FD + 1 : PG_DATA_FD, UINT_MAX, 0);
    /* Ctrl-C must reach only the service, which stops PostgreSQL after its last request. */
    setsid();
    umask(077);
    if (chdir(f->data) != 0)
        fail_in_child(f->data);
    step_down(&f->user);
    /* After the change of user, which resets it. */
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent)
        _exit(127);
    execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)environment);
    fail_in_child(argv[0]);
}

pid_t pg_spawn(const struct pg_folder *f, const char *const argv[], int in, int out, int death_signal)
{
    int null = in < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child(f, argv, in < 0 ? null : in, out, death_signal, parent);
    int why = errno;
    if (null >= 0)
        close(null);
    errno = why;
    return pid;
}

/* ---- finding ---- */

bool pg_status_read(const char *cluster, struct pg_status *out)
{
    char path[PG_PATH], text[4096];
    pg_folder_path(path, cluster, "postmaster.pid");
    if (pg_folder_read(path, text, sizeof text) <= 0)
        return false;
    *out = (struct pg_status){ 0 };
    char *rest = text;
    for (int line = 1; rest; line++) {
        char *value = strsep(&rest, "\n");
        if (line == 1)
            out->pid = (pid_t)atoi(value);
        else if (line == 5 && strlen(value) < sizeof out->socket)
            strcpy(out->socket, value);
        else if (line == 8)
            out->ready = strncmp(value, "ready", 5) == 0;
    }
    return out->pid > 1;
}

static bool read_proc_link(const char *pid, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "/proc/%s/%s", pid, name) >= sizeof path)
        return false;
    ssize_t n = readlink(path, out, size - 1);
    if (n <= 0)
        return false;
    out[n] = 0;
    return true;
}

/* All processes of PostgreSQL run in the cluster's folder. The pid alone is not enough: pids are reused, and
 * in a container often by the same programs. */
static bool is_of_cluster(const char *cluster, const char *pid)
{
    char text[PATH_MAX];
    if (!read_proc_link(pid, "cwd", text, sizeof text) || strcmp(text, cluster) != 0 ||
        !read_proc_link(pid, "exe", text, sizeof text))
        return false;
    const char *slash = strrchr(text, '/');
    return slash && strncmp(slash + 1, "postgres", 8) == 0;
}

/* Counts the processes of the cluster, and sends each of them `signal_all` (0: none). */
static int count_processes(const char *cluster, int signal_all)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return 0;
    int count = 0;
    struct dirent *e;
    while ((e = readdir(dir))) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !is_of_cluster(cluster, e->d_name))
            continue;
        count++;
        if (signal_all)
            kill((pid_t)atoi(e->d_name), signal_all);
    }
    closedir(dir);
    return count;
}

/* ---- stopping ---- */

static bool postmaster_runs(const char *cluster, struct pg_status *status)
{
    char pid[16];
    if (!pg_status_read(cluster, status))
        return false;
    snprintf(pid, sizeof pid, "%d", (int)status->pid);
    return is_of_cluster(cluster, pid);
}

bool pg_stop_leftovers(const char *cluster, bool (*stop)(void))
{
    char path[PG_PATH];
    struct pg_status status;
    pg_folder_path(path, cluster, "postmaster.pid");
    if (access(path, F_OK) != 0)
        return true;
    if (postmaster_runs(cluster, &status)) {
        log_event(LOG_WARN, "postgres_stop", "pid=%d reason=\"left over from an earlier start\"",
                  (int)status.pid);
        kill(status.pid, SIGINT);
    }
    for (int ms = 0; count_processes(cluster, ms == STOP_FAST_MS ? SIGQUIT : 0) > 0; ms += STOP_STEP_MS) {
        if (stop && stop())
            return false;
        if (ms >= STOP_MAX_MS)
            return log_failure("an earlier PostgreSQL still runs on %s and does not stop", cluster);
        pg_sleep_ms(STOP_STEP_MS);
    }
    if (unlink(path) != 0 && errno != ENOENT)
        return log_failure("cannot remove %s: %s", path, strerror(errno));
    return true;
}

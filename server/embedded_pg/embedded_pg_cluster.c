/* The cluster of the private PostgreSQL: how it is made, and who may connect to it. */
#include "server/embedded_pg/embedded_pg_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/log.h"

/* A small service on a shared machine. What PostgreSQL says goes to a file that people send around: without
 * DETAIL it holds no rows. */
static const char settings[] = "\n# ---- daybook: written once, yours to change ----\n"
                               "shared_buffers = 128MB\n"
                               "jit = off\n"
                               "timezone = 'UTC'\n"
                               "log_timezone = 'UTC'\n"
                               "recovery_init_sync_method = syncfs\n" /* back sooner after a crash */
                               "log_checkpoints = off\n"
                               "log_error_verbosity = terse\n"
                               "log_line_prefix = '%m [%p] '\n"
                               "cluster_name = 'daybook'\n";

int pg_cluster_version(const struct pg_folder *f)
{
    char path[PG_PATH], text[32];
    pg_path(path, f->cluster, "PG_VERSION");
    if (pg_read_file(path, text, sizeof text) > 0 && atoi(text) > 0)
        return atoi(text);
    struct stat st;
    if (lstat(f->cluster, &st) != 0 && errno == ENOENT)
        return 0;
    log_failure("%s is not a cluster of PostgreSQL that can be read", f->cluster);
    return -1;
}

/* Runs a program to its end; what it says goes to `out`. */
static bool run(const struct pg_folder *f, const char *const argv[], int in, int out)
{
    int status = 0;
    pid_t pid = pg_spawn(f, argv, in, out, SIGKILL);
    if (pid < 0)
        return log_failure("cannot start %s: %s", argv[0], strerror(errno));
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The database of the service, made in single-user mode: PostgreSQL need not be up. */
static bool make_database(const struct pg_folder *f, const char *postgres, const char *cluster, int out)
{
    static const char sql[] = "create database " PG_DATABASE " owner " PG_ROLE "\n";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return log_failure("cannot open a pipe: %s", strerror(errno));
    bool ok = write(ends[1], sql, sizeof sql - 1) == (ssize_t)(sizeof sql - 1);
    close(ends[1]);
    const char *const argv[] = { postgres, "--single",         "-D",        cluster,
                                 "-c",     "exit_on_error=on", "template1", NULL };
    ok = ok && run(f, argv, ends[0], out);
    close(ends[0]);
    return ok;
}

static bool append_settings(const char *cluster)
{
    char path[PG_PATH];
    pg_path(path, cluster, "postgresql.conf");
    int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, settings, sizeof settings - 1) == (ssize_t)(sizeof settings - 1);
    if (!ok)
        log_failure("cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Durable as a whole, then in its place, then there for good. */
static bool put_in_place(const struct pg_folder *f, const char *made)
{
    int fd = open(f->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0 && rename(made, f->cluster) == 0 && fsync(fd) == 0;
    if (!ok)
        log_failure("cannot put %s in its place: %s", made, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool pg_cluster_create(const struct pg_folder *f, const struct pg_install *install)
{
    char made[PG_PATH], inside[PG_PATH], initdb[PG_PATH], postgres[PG_PATH];
    pg_path(made, f->data, "cluster.new"); /* what a start that was cut off left of it goes first */
    pg_path(inside, f->inside, "cluster.new");
    pg_path(initdb, install->bin, "initdb");
    pg_path(postgres, install->bin, "postgres");
    const char *const clear[] = { "/bin/rm", "-rf", inside, NULL };
    const char *const create[] = { initdb,        "-D", inside,      "-U",
                                   PG_ROLE,       "-E", "UTF8",      "--locale=C.UTF-8",
                                   "--auth=peer", "-k", "--no-sync", "--no-instructions",
                                   NULL };
    int out = memfd_create("initdb", MFD_CLOEXEC); /* on no disk: a full one is a thing it may have to say */
    if (out < 0)
        return log_failure("cannot open a file in memory: %s", strerror(errno));
    log_event(LOG_INFO, "postgres_create", "version=%d data=\"%s\"", install->major, f->data);
    bool ok = pg_settle(made, NULL) && run(f, clear, -1, out) && run(f, create, -1, out) &&
              make_database(f, postgres, inside, out);
    if (!ok) {
        pg_show_end(out, 0);
        log_failure("PostgreSQL's cluster could not be made in %s: its own words stand above", f->data);
    }
    close(out);
    return ok && append_settings(made) && put_in_place(f, made);
}

bool pg_cluster_access(const struct pg_folder *f)
{
    char path[PG_PATH], text[512];
    pg_path(path, f->cluster, "pg_hba.conf");
    if (!pg_write_file(f, path,
                       "# Written by daybookd at every start: see pg_ident.conf.\n"
                       "local all all peer map=daybook\n"))
        return false;
    snprintf(text, sizeof text,
             "# Written by daybookd at every start: who may be the role of the service.\n"
             "daybook root " PG_ROLE "\n"
             "daybook \"%s\" " PG_ROLE "\n",
             f->user.name);
    pg_path(path, f->cluster, "pg_ident.conf");
    return pg_write_file(f, path, text);
}

/* Creates the cluster of the private PostgreSQL, and configures who may connect. */
#include "server/embedded_pg/pg.h"

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

/* Sized for a small service on a shared machine. Users attach postgres.log to bug reports, so it must not
 * contain row data: terse verbosity leaves out DETAIL. */
static const char settings[] = "\n# ---- daybook: written once, yours to change ----\n"
                               "shared_buffers = 128MB\n"
                               "jit = off\n"
                               "timezone = 'UTC'\n"
                               "log_timezone = 'UTC'\n"
                               "recovery_init_sync_method = syncfs\n" /* faster recovery after a crash */
                               "log_checkpoints = off\n"
                               "log_error_verbosity = terse\n"
                               "log_line_prefix = '%m [%p] '\n"
                               "cluster_name = 'daybook'\n";

int pg_cluster_version(const struct pg_folder *f)
{
    char path[PG_PATH], text[32];
    pg_folder_path(path, f->cluster, "PG_VERSION");
    if (pg_folder_read(path, text, sizeof text) > 0 && atoi(text) > 0)
        return atoi(text);
    struct stat st;
    if (lstat(f->cluster, &st) != 0 && errno == ENOENT)
        return 0;
    log_failure("%s is not a readable PostgreSQL cluster", f->cluster);
    return -1;
}

bool pg_cluster_run(const struct pg_folder *f, const char *const argv[], int in, int out)
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

static bool append_settings(const char *cluster)
{
    char path[PG_PATH];
    pg_folder_path(path, cluster, "postgresql.conf");
    int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, settings, sizeof settings - 1) == (ssize_t)(sizeof settings - 1);
    if (!ok)
        log_failure("cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Sync the files, rename, sync the folder: a crash leaves a complete cluster or none. */
static bool move_to_final_name(const struct pg_folder *f, const char *made)
{
    int fd = open(f->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0 && rename(made, f->cluster) == 0 && fsync(fd) == 0;
    if (!ok)
        log_failure("cannot rename %s to its final name: %s", made, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool pg_cluster_create(const struct pg_folder *f, const struct pg_install *install)
{
    static const char name[] = "cluster.new";
    char made[PG_PATH], inside[PG_PATH], initdb[PG_PATH];
    pg_folder_path(made, f->data, name); /* an interrupted start may have left one; it is removed first */
    pg_folder_path(inside, f->inside, name);
    pg_folder_path(initdb, install->bin, "initdb");
    const char *const clear[] = { "/bin/rm", "-rf", inside, NULL };
    const char *const create[] = { initdb,        "-D", inside,      "-U",
                                   PG_ADMIN,      "-E", "UTF8",      "--locale=C.UTF-8",
                                   "--auth=peer", "-k", "--no-sync", "--no-instructions",
                                   NULL };
    int out = memfd_create("initdb", MFD_CLOEXEC); /* in memory, because the error may be a full disk */
    if (out < 0)
        return log_failure("cannot open a file in memory: %s", strerror(errno));
    log_event(LOG_INFO, "postgres_create", "version=%d data=\"%s\"", install->major, f->data);
    bool ok = pg_stop_leftovers(made, NULL) && pg_cluster_run(f, clear, -1, out) &&
              pg_cluster_run(f, create, -1, out) && pg_roles_make(f, install, name, true, out);
    if (!ok) {
        pg_log_print_end(out, 0);
        log_failure("the PostgreSQL cluster in %s could not be created: see the messages above", f->data);
    }
    close(out);
    return ok && append_settings(made) && move_to_final_name(f, made);
}

bool pg_cluster_access(const struct pg_folder *f)
{
    char path[PG_PATH], text[512];
    pg_folder_path(path, f->cluster, "pg_hba.conf");
    if (!pg_folder_write(f, path,
                         "# Written by daybookd at every start: see pg_ident.conf.\n"
                         "local all " PG_ROLE "," PG_ADMIN " peer map=daybook\n"
                         "local replication " PG_ADMIN " peer map=daybook\n" /* for pg_basebackup */
                         "local " PG_DATABASE " +" PG_READERS " scram-sha-256\n"))
        return false;
    snprintf(
        text, sizeof text,
        "# Written by daybookd at every start: who may be the role of the service, and the administrator.\n"
        "daybook root " PG_ROLE "\n"
        "daybook root " PG_ADMIN "\n"
        "daybook \"%s\" " PG_ROLE "\n"
        "daybook \"%s\" " PG_ADMIN "\n",
        f->user.name, f->user.name);
    pg_folder_path(path, f->cluster, "pg_ident.conf");
    return pg_folder_write(f, path, text);
}

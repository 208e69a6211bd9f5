/* The data folder of the private PostgreSQL: its path, its owner, and the files that the service writes
 * there. */
#include "server/embedded_pg/pg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/log.h"

enum { MAX_DATA_PATH = PG_PATH - 64 };

void pg_folder_path(char out[PG_PATH], const char *folder, const char *name)
{
    if (snprintf(out, PG_PATH, "%s/%s", folder, name) >= PG_PATH)
        abort();
}

/* ---- files ---- */

static void give_to_user(const struct pg_folder *f, int fd)
{
    if (f->user.step_down && fchown(fd, f->user.uid, f->user.gid) != 0)
        log_event(LOG_WARN, "data_folder", "reason=\"%s\"", strerror(errno));
}

bool pg_folder_write(const struct pg_folder *f, const char *path, const char *text)
{
    size_t len = strlen(text);
    /* Root writes into another user's folder here, so it must not follow symbolic links. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return log_failure("cannot write %s: %s", path, strerror(errno));
    give_to_user(f, fd);
    bool ok = write(fd, text, len) == (ssize_t)len;
    int why = errno;
    close(fd);
    return ok || log_failure("cannot write %s: %s", path, strerror(why));
}

ssize_t pg_folder_read(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, size - 1);
    int why = errno;
    close(fd);
    errno = why;
    if (n >= 0)
        out[n] = 0;
    return n;
}

/* ---- path ---- */

static bool default_data(char out[PG_PATH])
{
    const char *base = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int n;
    /* PostgreSQL does not run as root, and its user cannot enter root's home. */
    if (geteuid() == 0) {
        n = snprintf(out, PG_PATH, "/var/lib/daybook");
    } else if (base && base[0] == '/') {
        n = snprintf(out, PG_PATH, "%s/daybook", base);
    } else {
        struct passwd *pw = home && home[0] == '/' ? NULL : getpwuid(geteuid());
        if (pw)
            home = pw->pw_dir;
        if (!home || home[0] != '/')
            return log_failure("HOME is not set, so there is no default data folder: give --data");
        n = snprintf(out, PG_PATH, "%s/.local/share/daybook", home);
    }
    return n < MAX_DATA_PATH || log_failure("the data folder's path is longer than %d bytes", MAX_DATA_PATH);
}

static bool absolute(const char *data, char out[PG_PATH])
{
    char here[PATH_MAX] = "";
    if (data[0] != '/' && !getcwd(here, sizeof here))
        return log_failure("cannot read the current folder: %s", strerror(errno));
    int n = snprintf(out, PG_PATH, "%s%s%s", here, here[0] ? "/" : "", data);
    if (n >= MAX_DATA_PATH)
        return log_failure("the data folder's path is longer than %d bytes", MAX_DATA_PATH);
    while (n > 1 && out[n - 1] == '/')
        out[--n] = 0;
    return true;
}

/* mkdir -p */
static bool make_folders(const char *path)
{
    char part[PG_PATH];
    size_t len = strlen(path);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, i == len ? 0700 : 0755) != 0 && errno != EEXIST)
            return log_failure("cannot create the folder %s: %s", part, strerror(errno));
    }
    return true;
}

/* ---- owner ---- */

static bool set_user(struct pg_user *u, const struct passwd *pw, bool step_down)
{
    if (strlen(pw->pw_name) >= sizeof u->name)
        return log_failure("the user name %s is too long", pw->pw_name);
    u->uid = pw->pw_uid;
    u->gid = pw->pw_gid;
    strcpy(u->name, pw->pw_name);
    u->step_down = step_down;
    u->group_count = PG_GROUPS;
    if (getgrouplist(pw->pw_name, pw->pw_gid, u->groups, &u->group_count) < 0)
        u->group_count = PG_GROUPS;
    return true;
}

/* As root: the owner of the folder if that is not root, else postgres, else nobody. */
static bool choose_user(struct pg_user *u, const struct stat *data)
{
    struct passwd *pw;
    if (geteuid() != 0) {
        pw = getpwuid(geteuid());
        if (!pw)
            return log_failure(
                "the user with the id %u has no name here, and PostgreSQL needs one: add it to the "
                "users of this machine",
                (unsigned)geteuid());
        return set_user(u, pw, false);
    }
    pw = data->st_uid ? getpwuid(data->st_uid) : NULL;
    if (!pw)
        pw = getpwnam("postgres");
    if (!pw)
        pw = getpwnam("nobody");
    if (!pw || pw->pw_uid == 0)
        return log_failure("PostgreSQL does not run as root, and there is no user postgres to run it as");
    return set_user(u, pw, true);
}

/* Whether the unprivileged user can reach the folder. */
static bool can_enter(const struct pg_user *u, const char *path)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (setgroups((size_t)u->group_count, u->groups) != 0 || setgid(u->gid) != 0 || setuid(u->uid) != 0)
            _exit(0); /* starting PostgreSQL will report this error */
        _exit(access(path, X_OK) == 0 ? 0 : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}

/* If the path is not accessible to the user (in root's home, for example), PostgreSQL gets an open
 * descriptor. */
static bool set_inside_path(struct pg_folder *f)
{
    if (!f->user.step_down || can_enter(&f->user, f->data)) {
        strcpy(f->inside, f->data);
        return true;
    }
    f->data_fd = open(f->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(f->inside, sizeof f->inside, "/proc/self/fd/%d", PG_DATA_FD);
    return f->data_fd >= 0 || log_failure("cannot open the folder %s: %s", f->data, strerror(errno));
}

/* Do not change owner and mode of a folder that holds files of others. */
static bool has_foreign_files(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    bool other = false, ours = false;
    struct dirent *e;
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, "cluster") == 0 || strcmp(e->d_name, "daybook.lock") == 0)
            ours = true;
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                 strcmp(e->d_name, "lost+found") != 0)
            other = true;
    }
    closedir(dir);
    return other && !ours;
}

static bool take_over(struct pg_folder *f, const struct stat *st)
{
    if (has_foreign_files(f->data))
        return log_failure("the folder %s contains other files: choose another --data folder", f->data);
    if (!f->user.step_down && st->st_uid != geteuid()) {
        struct passwd *pw = getpwuid(st->st_uid);
        return log_failure("the folder %s belongs to %s: start as that user, or choose another --data folder",
                           f->data, pw ? pw->pw_name : "another user");
    }
    if (st->st_uid != f->user.uid && lchown(f->data, f->user.uid, f->user.gid) != 0)
        return log_failure("cannot give the folder %s to the user %s: %s", f->data, f->user.name,
                           strerror(errno));
    if ((st->st_mode & 07777) != 0700 && chmod(f->data, 0700) != 0)
        return log_failure("cannot make the folder %s private: %s", f->data, strerror(errno));
    return set_inside_path(f);
}

static bool find_path(const char *data, char out[PG_PATH])
{
    return data && data[0] ? absolute(data, out) : default_data(out);
}

bool pg_folder_check(const char *data)
{
    char path[PG_PATH], cluster[PG_PATH];
    struct stat st;
    if (!find_path(data, path))
        return false;
    pg_folder_path(cluster, path, "cluster");
    if (stat(cluster, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return true; /* opening it reports other errors */
    return log_failure(
        "there is no Daybook data in %s: start daybookd serve --data %s first, or name another --data", path,
        path);
}

bool pg_folder_open(const char *data, struct pg_folder *f)
{
    char path[PG_PATH], real[PATH_MAX];
    struct stat st;
    f->lock_fd = f->log_fd = f->data_fd = -1;
    if (!find_path(data, path) || !make_folders(path))
        return false;
    if (!realpath(path, real) || stat(real, &st) != 0)
        return log_failure("cannot open the folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return log_failure("%s is not a folder", path);
    if (strlen(real) >= MAX_DATA_PATH)
        return log_failure("the data folder's path is longer than %d bytes", MAX_DATA_PATH);
    strcpy(f->data, real);
    pg_folder_path(f->cluster, f->data, "cluster");
    pg_folder_path(f->log, f->data, "postgres.log");
    pg_folder_path(f->lock, f->data, "daybook.lock");
    return choose_user(&f->user, &st) && take_over(f, &st);
}

void pg_folder_close(struct pg_folder *f)
{
    if (f->log_fd >= 0)
        close(f->log_fd);
    if (f->lock_fd >= 0)
        close(f->lock_fd); /* releases the lock */
    if (f->data_fd >= 0)
        close(f->data_fd);
    f->log_fd = f->lock_fd = f->data_fd = -1;
}

/* ---- the socket ---- */

/* Creates the folder if needed. Returns whether it belongs to the user and is private. */
static bool make_private_folder(const struct pg_folder *f, const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) == 0) {
        if (f->user.step_down && lchown(path, f->user.uid, f->user.gid) != 0)
            return false;
    } else if (errno != EEXIST) {
        return false;
    }
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == f->user.uid &&
           (st.st_mode & 077) == 0;
}

/* Makes the name stable across starts, so that crashes do not leave many folders behind. */
static uint64_t path_hash(const char *path)
{
    uint64_t h = 14695981039346656037u;
    for (; *path; path++)
        h = (h ^ (unsigned char)*path) * 1099511628211u;
    return h;
}

bool pg_folder_socket(struct pg_folder *f)
{
    enum { NAME = sizeof "/.s.PGSQL.5432" };
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *bases[] = { f->user.step_down              ? "/run"
                            : runtime && runtime[0] == '/' ? runtime
                                                           : "/tmp",
                            "/tmp" };
    int n = snprintf(f->socket, sizeof f->socket, "%s/socket", f->data);
    /* unix_socket_directories is a list, so a comma or a quote would split the path. */
    if (f->data_fd < 0 && n + NAME <= PG_SOCKET_PATH && !strpbrk(f->data, ",\"") &&
        make_private_folder(f, f->socket))
        return true;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        n = snprintf(f->socket, sizeof f->socket, "%s/daybook-%016" PRIx64, bases[i], path_hash(f->data));
        if (n + NAME <= PG_SOCKET_PATH && !strpbrk(f->socket, ",\"") && make_private_folder(f, f->socket))
            return true;
    }
    strcpy(f->socket, "/tmp/daybook-XXXXXX");
    if (mkdtemp(f->socket) && (!f->user.step_down || lchown(f->socket, f->user.uid, f->user.gid) == 0))
        return true;
    return log_failure("cannot create a folder for PostgreSQL's socket in /tmp: %s", strerror(errno));
}

/* PostgreSQL does not start while a process has the pid in the lock, even a zombie or an unrelated one. */
bool pg_folder_clear_socket(const struct pg_folder *f)
{
    static const char *const endings[] = { ".lock", "" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char path[PG_PATH];
        snprintf(path, sizeof path, "%s/.s.PGSQL.%d%s", f->socket, PG_PORT, endings[i]);
        if (unlink(path) != 0 && errno != ENOENT)
            return log_failure("cannot remove %s: %s", path, strerror(errno));
    }
    return true;
}

/* Shared by the files of server/embedded_pg. */
#ifndef DAYBOOK_SERVER_EMBEDDED_PG_PG_H
#define DAYBOOK_SERVER_EMBEDDED_PG_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PG_OLDEST_MAJOR = 15,
    PG_PORT = 5432, /* only part of the socket's name; there is no TCP */
    PG_PATH = 1024, /* PostgreSQL's own limit */
    PG_SOCKET_PATH = 108,
    PG_GROUPS = 64,
    PG_DATA_FD = 9, /* the data folder in PostgreSQL's processes, if its user cannot reach the path */
};

#define PG_ADMIN    "daybook_admin"  /* the superuser of the cluster */
#define PG_ROLE     "daybook"        /* of the service: owns the database and its schema */
#define PG_READERS  "daybook_reader" /* members log in with a password, and read */
#define PG_DATABASE "daybook"

/* ---- pg_find.c ---- */

struct pg_install {
    int major;
    char bin[PG_PATH];
};

/* Finds the newest PostgreSQL with pgvector, or that version if major is not 0. False: one line on stderr. */
bool pg_find(int major, const char *cluster, struct pg_install *out);

/* ---- pg_folder.c ---- */

/* The user that runs PostgreSQL: the user of this process, or an unprivileged user if this process is root.
 */
struct pg_user {
    uid_t uid;
    gid_t gid;
    char name[64];
    gid_t groups[PG_GROUPS];
    int group_count;
    bool step_down;
};

struct pg_folder {
    char data[PG_PATH], cluster[PG_PATH], log[PG_PATH], lock[PG_PATH];
    char socket[PG_SOCKET_PATH]; /* folder of the socket */
    struct pg_user user;
    char inside[PG_PATH]; /* path of the data folder in PostgreSQL's processes */
    int lock_fd, log_fd, data_fd;
};

/* Checks that the folder has a cluster, and creates nothing. False: one line on stderr. */
bool pg_folder_check(const char *data);
/* Finds the folder and its user, and creates the folder if needed. False: one line on stderr. */
bool pg_folder_open(const char *data, struct pg_folder *f);
void pg_folder_close(struct pg_folder *f);
/* Creates a folder for the socket with a path that is short enough. */
bool pg_folder_socket(struct pg_folder *f);
/* Removes the socket and its lock that a killed PostgreSQL left behind. Call it when none runs. */
bool pg_folder_clear_socket(const struct pg_folder *f);
/* Writes "folder/name". Aborts if it does not fit; pg_folder_open has checked that it does. */
void pg_folder_path(char out[PG_PATH], const char *folder, const char *name);
/* Replaces the content of the file, which the user will own. */
bool pg_folder_write(const struct pg_folder *f, const char *path, const char *text);
/* Reads up to size - 1 bytes; -1: cannot read the file. */
ssize_t pg_folder_read(const char *path, char *out, size_t size);

/* ---- pg_lock.c ---- */

/* Locks the folder for a service. False: one line on stderr that names the holder. */
bool pg_lock(struct pg_folder *f);
/* Locks the folder for a command. If a service holds the lock, sets *joined and f->socket of its cluster. */
bool pg_lock_or_join(struct pg_folder *f, bool *joined);

/* ---- pg_log.c ---- */

bool pg_log_open(struct pg_folder *f);
/* Rotates a large log to postgres.log.1. */
void pg_log_rotate(const struct pg_folder *f);
/* Prints the last lines of the file after offset `from` on stderr. */
void pg_log_print_end(int fd, off_t from);

/* ---- pg_cluster.c ---- */

/* The major version of the cluster in the folder; 0: no cluster; -1: unreadable (one line on stderr). */
int pg_cluster_version(const struct pg_folder *f);
/* Creates the cluster, completely or not at all. False: the end of initdb's output and one line on stderr. */
bool pg_cluster_create(const struct pg_folder *f, const struct pg_install *install);
/* Allows this user and root to connect as the service's role and as the administrator, and readers to connect
 * with their passwords. */
bool pg_cluster_access(const struct pg_folder *f);
/* Runs a program as the folder's user and waits for it. Its output goes to `out`. */
bool pg_cluster_run(const struct pg_folder *f, const char *const argv[], int in, int out);

/* ---- pg_roles.c ---- */

/* Makes the roles in the cluster `name` of the folder, which has no server now; and the database, if it is
 * new. The output of PostgreSQL goes to `out`. */
bool pg_roles_make(const struct pg_folder *f, const struct pg_install *install, const char *name, bool is_new,
                   int out);
/* The same in the folder's cluster, unless it was done before. False: one line on stderr. */
bool pg_roles_update(const struct pg_folder *f, const struct pg_install *install);

/* ---- pg_process.c ---- */

/* Starts a program as the folder's user, in its own session. It gets `death_signal` when the calling thread
 * ends for any reason. `in` becomes its stdin, `out` its stdout and stderr. -1: see errno. */
pid_t pg_spawn(const struct pg_folder *f, const char *const argv[], int in, int out, int death_signal);

/* The content of postmaster.pid. */
struct pg_status {
    pid_t pid;
    char socket[PG_SOCKET_PATH];
    bool ready;
};
bool pg_status_read(const char *cluster, struct pg_status *out);

/* Stops processes that an earlier run left on the cluster, and removes its postmaster.pid. `stop` (may be
 * NULL) ends the wait. Returns false if some are still running. */
bool pg_stop_leftovers(const char *cluster, bool (*stop)(void));

int64_t pg_now_ms(void); /* monotonic */
void pg_sleep_ms(int ms);

#endif

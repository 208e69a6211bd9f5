/* What the files of the private PostgreSQL share: where it is installed, whose it is, and how its programs
 * are run. */
#ifndef DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_INTERNAL_H
#define DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PG_OLDEST_MAJOR = 15,
    PG_PORT = 5432, /* only a part of the socket's name: there is no TCP */
    PG_PATH = 1024, /* PostgreSQL's own limit */
    PG_SOCKET_PATH = 108,
    PG_GROUPS = 64,
    PG_DATA_FD = 9, /* of the data folder in PostgreSQL's processes, where they cannot walk to it */
};

#define PG_ROLE     "daybook"
#define PG_DATABASE "daybook"

/* ---- embedded_pg_find.c ---- */

struct pg_install {
    int major;
    char bin[PG_PATH];
};

/* The newest PostgreSQL with pgvector, or (major not 0) that version. False: one line on stderr. */
bool pg_find(int major, const char *cluster, struct pg_install *out);

/* ---- embedded_pg_folder.c ---- */

/* Who runs PostgreSQL: the user of this process, or, as root, the one that it steps down to. */
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
    char socket[PG_SOCKET_PATH]; /* the folder of the socket */
    struct pg_user user;
    char inside[PG_PATH]; /* the data folder, as PostgreSQL's processes call it */
    int lock_fd, log_fd, data_fd;
};

/* Finds the folder and its user, and makes the folder if it is new. False: one line on stderr. */
bool pg_folder_open(const char *data, struct pg_folder *f);
void pg_folder_close(struct pg_folder *f);
/* Makes a folder for the socket whose path is short enough. */
bool pg_folder_socket(struct pg_folder *f);
/* "folder/name" in a buffer of PG_PATH; paths are checked to be far shorter than that when the folder is
 * opened. */
void pg_path(char out[PG_PATH], const char *folder, const char *name);
/* Replaces the file by this text, owned by the user. */
bool pg_write_file(const struct pg_folder *f, const char *path, const char *text);
/* Reads up to size - 1 bytes; -1 when the file cannot be read. */
ssize_t pg_read_file(const char *path, char *out, size_t size);

/* ---- embedded_pg_lock.c ---- */

/* Locks the folder for a service. False: one line on stderr that says who has it. */
bool pg_lock(struct pg_folder *f);
/* Locks it for a command, or (*joined) finds the cluster of the service that has it up. */
bool pg_lock_or_join(struct pg_folder *f, bool *joined);

/* ---- embedded_pg_log.c ---- */

bool pg_log_open(struct pg_folder *f);
/* Moves a log that has grown large to postgres.log.1. */
void pg_log_bound(const struct pg_folder *f);
/* Shows on stderr the last lines of a file behind `from`. */
void pg_show_end(int fd, off_t from);

/* ---- embedded_pg_cluster.c ---- */

/* The major version of the cluster in the folder, 0 when there is none, -1 when it cannot be read (one line
 * on stderr). */
int pg_cluster_version(const struct pg_folder *f);
/* Makes the cluster: complete or not at all. False: one line on stderr, after the end of what initdb said. */
bool pg_cluster_create(const struct pg_folder *f, const struct pg_install *install);
/* Writes who may connect: this user and root, as the one role of the service. */
bool pg_cluster_access(const struct pg_folder *f);

/* ---- embedded_pg_process.c ---- */

/* Starts a program as the folder's user, in a session of its own; `death_signal` is sent to it when this
 * thread ends, however that comes. `in` and `out` become its standard input and its two outputs. -1: errno
 * says why. */
pid_t pg_spawn(const struct pg_folder *f, const char *const argv[], int in, int out, int death_signal);

/* What PostgreSQL says about itself in postmaster.pid. */
struct pg_status {
    pid_t pid;
    char socket[PG_SOCKET_PATH];
    bool ready;
};
bool pg_status_read(const char *cluster, struct pg_status *out);

/* Ends whatever still runs on the cluster since an earlier life and takes away its postmaster.pid. `stop`
 * (NULL: never) ends the wait. False: it is still there. */
bool pg_settle(const char *cluster, bool (*stop)(void));

int64_t pg_now_ms(void); /* of a clock that only goes forward */
void pg_sleep_ms(int ms);

#endif

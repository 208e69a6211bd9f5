/* The log file of the private PostgreSQL. */
#include "server/embedded_pg/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log.h"

enum { MAX_BYTES = 16 << 20 };

bool pg_log_open(struct pg_folder *f)
{
    f->log_fd = open(f->log, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->log_fd < 0)
        return log_failure("cannot write %s: %s", f->log, strerror(errno));
    if (f->user.step_down && fchown(f->log_fd, f->user.uid, f->user.gid) != 0)
        return log_failure("cannot give %s to the user %s: %s", f->log, f->user.name, strerror(errno));
    return true;
}

/* Copies and truncates. PostgreSQL opens the log with O_APPEND, so it continues at the new end. */
void pg_log_rotate(const struct pg_folder *f)
{
    struct stat st;
    char path[PG_PATH];
    if (fstat(f->log_fd, &st) != 0 || st.st_size <= MAX_BYTES)
        return;
    pg_folder_path(path, f->data, "postgres.log.1");
    int old = pg_folder_write(f, path, "") ? open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    off_t at = st.st_size - MAX_BYTES;
    while (old >= 0 && sendfile(old, f->log_fd, &at, MAX_BYTES) > 0)
        ;
    if (old >= 0)
        close(old);
    if (ftruncate(f->log_fd, 0) != 0)
        log_event(LOG_WARN, "postgres_log", "reason=\"%s\"", strerror(errno));
}

void pg_log_print_end(int fd, off_t from)
{
    enum { LINES = 8 };
    char text[4096], *line[LINES] = { 0 };
    int count = 0;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size - from > (off_t)sizeof text - 1)
        from = size - (off_t)sizeof text + 1;
    ssize_t n = pread(fd, text, sizeof text - 1, from);
    text[n > 0 ? n : 0] = 0;
    for (char *rest = text; rest;) {
        char *next = strsep(&rest, "\n");
        if (*next)
            line[count++ % LINES] = next;
    }
    for (int i = count > LINES ? count - LINES : 0; i < count; i++)
        fprintf(stderr, "  %s\n", line[i % LINES]);
}

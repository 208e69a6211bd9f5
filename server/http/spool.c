/* A body that is kept in a temporary file while it arrives, and then read line by line in little memory. */
#include "server/http/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/log.h"

enum {
    BLOCK_BYTES = 64 * 1024,
    DROP_BYTES = 4 * 1024 * 1024, /* the room of what was read is given back in pieces of this size */
};

/* ---- room ---- */

static atomic_llong taken; /* by the spools of all loops */

static void give_room(struct spool *s, int64_t bytes)
{
    s->room -= bytes;
    atomic_fetch_sub(&taken, bytes);
}

static enum err take_room(struct spool *s, size_t len)
{
    const int64_t bytes = (int64_t)len;
    s->room += bytes;
    if (atomic_fetch_add(&taken, bytes) + bytes <= s->most)
        return OK;
    give_room(s, bytes);
    log_event(LOG_WARN, "spool_full", "limit_bytes=%lld", (long long)s->most);
    return ERR_INSUFFICIENT_STORAGE;
}

/* ---- keeping ---- */

static enum err failed(const char *step)
{
    int why = errno;
    log_event(LOG_ERROR, "spool_failed", "step=%s reason=\"%s\"", step, strerror(why));
    return why == ENOSPC || why == EDQUOT || why == EFBIG ? ERR_INSUFFICIENT_STORAGE : ERR_INTERNAL;
}

static int open_named(const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/daybook-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int open_in(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    bool unknown =
        errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL; /* by the file system or kernel */
    return fd < 0 && unknown ? open_named(folder) : fd;
}

enum err spool_open(struct spool *s, int64_t most)
{
    *s = (struct spool){ .fd = -1, .most = most };
    const char *chosen = getenv("TMPDIR");
    if (chosen && *chosen) {
        s->fd = open_in(chosen);
    } else {
        s->fd = open_in("/var/tmp"); /* which is a disk where /tmp is memory */
        if (s->fd < 0)
            s->fd = open_in("/tmp");
    }
    return s->fd < 0 ? failed("open") : OK;
}

enum err spool_add(struct spool *s, const void *bytes, size_t len)
{
    TRY(take_room(s, len));
    for (const char *p = bytes; len;) {
        ssize_t n = write(s->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed("write");
        p += n;
        len -= (size_t)n;
        s->size += n;
    }
    return OK;
}

void spool_close(struct spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    give_room(s, s->room);
    free(s->data);
    *s = (struct spool){ .fd = -1 };
}

/* ---- reading ---- */

static void grow(struct spool *s)
{
    s->cap = s->cap ? s->cap * 2 : (size_t)BLOCK_BYTES * 2;
    s->data = realloc(s->data, s->cap + 1); /* and the NUL of a last line that fills it */
    if (!s->data)
        abort();
}

/* Reads on behind what is there. */
static enum spool_found fill(struct spool *s)
{
    size_t have = s->end - s->start;
    if (s->start)
        memmove(s->data, s->data + s->start, have);
    s->start = 0;
    s->end = have;
    if (s->cap - have < BLOCK_BYTES)
        grow(s);
    ssize_t n;
    do
        n = pread(s->fd, s->data + have, BLOCK_BYTES, s->at);
    while (n < 0 && errno == EINTR);
    if (n <= 0) {
        errno = n ? errno : EIO; /* it ends before what was written to it */
        (void)failed("read");
        return SPOOL_BROKEN;
    }
    s->end += (size_t)n;
    s->at += n;
    if (s->at - s->dropped >= DROP_BYTES) { /* best effort: closing gives back everything */
        const int64_t read = s->at - s->dropped;
        if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, s->dropped, read) == 0)
            give_room(s, read);
        s->dropped = s->at;
    }
    return SPOOL_MORE;
}

/* Takes one line from what was read. SPOOL_MORE: its end is not there. */
static enum spool_found cut(struct spool *s, size_t most, char **line, size_t *len)
{
    size_t have = s->end - s->start;
    bool all = s->at == s->size; /* of the file is read */
    if (!have)
        return all ? SPOOL_END : SPOOL_MORE;
    char *from = s->data + s->start;
    char *end = memchr(from + s->seen, '\n', have - s->seen);
    if (!end && !all && !s->rest && have <= most + 1) { /* 1: it may be the \r */
        s->seen = have;
        return SPOOL_MORE;
    }
    size_t used = end ? (size_t)(end - from) : have;
    bool rest = s->rest;
    s->rest = !end && !all;
    s->start += used + (end != NULL);
    s->seen = 0;
    if (rest)
        return SPOOL_BLANK;
    s->number++;
    used -= end && used && from[used - 1] == '\r';
    if (!used)
        return SPOOL_BLANK;
    if (used > most)
        return SPOOL_TOO_LONG;
    from[used] = '\0';
    *line = from;
    *len = used;
    return SPOOL_LINE;
}

enum spool_found spool_step(struct spool *s, size_t most, char **line, size_t *len)
{
    enum spool_found found;
    *line = NULL;
    do
        found = cut(s, most, line, len);
    while (found == SPOOL_BLANK);
    return found == SPOOL_MORE ? fill(s) : found;
}

/* Spools a bulk body to a temporary file, and then reads it line by line in little memory. */
#include "server/http/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "server/log.h"

enum {
    BLOCK_BYTES = 64 * 1024,
    PUNCH_BYTES = 4 * 1024 * 1024, /* free the file's disk blocks in pieces of this size as it is read */
};

/* ---- disk space ---- */

static atomic_llong total_reserved; /* by the spools of all loops, in bytes */

static void release_space(struct spool *s, int64_t bytes)
{
    s->reserved -= bytes;
    atomic_fetch_sub(&total_reserved, bytes);
}

static enum err reserve_space(struct spool *s, size_t len)
{
    const int64_t bytes = (int64_t)len;
    s->reserved += bytes;
    if (atomic_fetch_add(&total_reserved, bytes) + bytes <= s->max)
        return OK;
    release_space(s, bytes);
    log_event(LOG_WARN, "spool_full", "limit_bytes=%lld", (long long)s->max);
    return ERR_INSUFFICIENT_STORAGE;
}

/* ---- writing ---- */

static enum err log_errno(const char *step)
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
    bool unsupported = errno == EOPNOTSUPP || errno == EISDIR ||
                       errno == EINVAL; /* no O_TMPFILE in the file system or kernel */
    return fd < 0 && unsupported ? open_named(folder) : fd;
}

enum err spool_open(struct spool *s, int64_t max)
{
    *s = (struct spool){ .fd = -1, .max = max };
    const char *chosen = getenv("TMPDIR");
    if (chosen && *chosen) {
        s->fd = open_in(chosen);
    } else {
        s->fd = open_in("/var/tmp"); /* on disk even where /tmp is a tmpfs */
        if (s->fd < 0)
            s->fd = open_in("/tmp");
    }
    return s->fd < 0 ? log_errno("open") : OK;
}

enum err spool_add(struct spool *s, const void *bytes, size_t len)
{
    TRY(reserve_space(s, len));
    for (const char *p = bytes; len;) {
        ssize_t n = write(s->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return log_errno("write");
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
    release_space(s, s->reserved);
    free(s->data);
    *s = (struct spool){ .fd = -1 };
}

/* ---- reading ---- */

static void grow(struct spool *s)
{
    s->cap = s->cap ? s->cap * 2 : (size_t)BLOCK_BYTES * 2;
    s->data = memory_resize(s->data, s->cap + 1); /* +1 for the NUL after a last line that fills the buffer */
}

/* Reads the next block of the file into the buffer. */
static enum spool_result fill(struct spool *s)
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
        errno = n ? errno : EIO; /* end of file before `size` */
        (void)log_errno("read");
        return SPOOL_FAILED;
    }
    s->end += (size_t)n;
    s->at += n;
    if (s->at - s->punched >= PUNCH_BYTES) { /* best effort: spool_close frees everything */
        const int64_t read = s->at - s->punched;
        if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, s->punched, read) == 0)
            release_space(s, read);
        s->punched = s->at;
    }
    return SPOOL_MORE;
}

/* Takes one line from the buffer. SPOOL_MORE: its end has not been read yet. */
static enum spool_result next_line(struct spool *s, size_t max, char **line, size_t *len)
{
    size_t have = s->end - s->start;
    bool at_end = s->at == s->size;
    if (!have)
        return at_end ? SPOOL_END : SPOOL_MORE;
    char *from = s->data + s->start;
    char *end = memchr(from + s->scanned, '\n', have - s->scanned);
    if (!end && !at_end && !s->skipping && have <= max + 1) { /* + 1 for a \r */
        s->scanned = have;
        return SPOOL_MORE;
    }
    size_t used = end ? (size_t)(end - from) : have;
    bool skipping = s->skipping;
    s->skipping = !end && !at_end;
    s->start += used + (end != NULL);
    s->scanned = 0;
    if (skipping)
        return SPOOL_BLANK;
    s->number++;
    used -= end && used && from[used - 1] == '\r';
    if (!used)
        return SPOOL_BLANK;
    if (used > max)
        return SPOOL_TOO_LONG;
    from[used] = '\0';
    *line = from;
    *len = used;
    return SPOOL_LINE;
}

enum spool_result spool_step(struct spool *s, size_t max, char **line, size_t *len)
{
    enum spool_result result;
    *line = NULL;
    do
        result = next_line(s, max, line, len);
    while (result == SPOOL_BLANK);
    return result == SPOOL_MORE ? fill(s) : result;
}

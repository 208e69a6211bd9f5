/* Spools a bulk body to a temporary file, and then reads it line by line in little memory. */
#ifndef DAYBOOK_SERVER_HTTP_SPOOL_H
#define DAYBOOK_SERVER_HTTP_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/problem.h"

struct spool {
    int fd;
    int64_t size;          /* of the file */
    int64_t reserved, max; /* disk space of this spool; limit of all spools together */
    int64_t at, punched;   /* how far the file was read, and its blocks freed */
    char *data;            /* bytes that were read but not returned yet: from `start` to `end` */
    size_t start, end, cap;
    size_t scanned; /* this many bytes after `start` contain no newline */
    bool skipping;  /* the bytes at `start` belong to a line that was too long */
    int64_t number; /* of the last line, from 1 */
};

/* Creates an unnamed file in TMPDIR, /var/tmp or /tmp. All spools of the process may take `max` bytes
 * together. Errors are logged with their reason; a full disk or a reached limit is ERR_INSUFFICIENT_STORAGE.
 */
enum err spool_open(struct spool *s, int64_t max) must_check;
enum err spool_add(struct spool *s, const void *bytes, size_t len) must_check;
/* Frees the file and the buffer; the spool is empty afterwards. */
void spool_close(struct spool *s);

enum spool_result {
    SPOOL_MORE,  /* no complete line yet: call again */
    SPOOL_BLANK, /* never returned by spool_step */
    SPOOL_LINE,
    SPOOL_TOO_LONG, /* a line of more than `max` bytes was skipped */
    SPOOL_END,
    SPOOL_FAILED, /* the file cannot be read */
};

/* Does a bounded amount of work towards the next line, so that it fits in a turn of the loop. A line ends
 * with LF, CR LF or the end of the body. Blank lines are counted but skipped. The line is NUL-terminated and
 * valid until the next call; it is NULL unless the result is SPOOL_LINE. */
enum spool_result spool_step(struct spool *s, size_t max, char **line, size_t *len);

#endif

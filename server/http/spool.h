/* A body that is kept in a temporary file while it arrives, and then read line by line in little memory. */
#ifndef DAYBOOK_SERVER_HTTP_SPOOL_H
#define DAYBOOK_SERVER_HTTP_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/problem.h"

struct spool {
    int fd;
    int64_t size;        /* of what was kept */
    int64_t room, most;  /* what it takes of the disk; what all may take together */
    int64_t at, dropped; /* how far it was read, and its room given back */
    char *data;          /* what was read and not given yet is from `start` to `end` */
    size_t start, end, cap;
    size_t seen;    /* so many bytes after `start` hold no end of a line */
    bool rest;      /* they belong to a line that was too long */
    int64_t number; /* of the last line found, from 1 */
};

/* The file has no name, in TMPDIR or else in /var/tmp or /tmp. An error has been logged with its reason, and
 * is ERR_INSUFFICIENT_STORAGE when there is no room: on the disk, or within the `most` bytes that all spools
 * of the process may take together. */
enum err spool_open(struct spool *s, int64_t most) must_check;
enum err spool_add(struct spool *s, const void *bytes, size_t len) must_check;
/* Gives everything back; it is empty then. */
void spool_close(struct spool *s);

enum spool_found {
    SPOOL_MORE,  /* nothing to give yet: ask again */
    SPOOL_BLANK, /* never given */
    SPOOL_LINE,
    SPOOL_TOO_LONG, /* a line of more than `most` bytes, which is left out */
    SPOOL_END,
    SPOOL_BROKEN, /* the file cannot be read */
};

/* One step towards the next line, short enough for a turn of the loop. Lines end with \n or \r\n, the last
 * one may end with the body; blank ones are counted and left out. The line has a NUL behind it, and lives
 * until the next step; it is NULL unless SPOOL_LINE is found. */
enum spool_found spool_step(struct spool *s, size_t most, char **line, size_t *len);

#endif

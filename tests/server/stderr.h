/* Captures stderr. */
#ifndef DAYBOOK_TESTS_SERVER_STDERR_H
#define DAYBOOK_TESTS_SERVER_STDERR_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int stderr_before, stderr_now;

static inline void stderr_begin(void)
{
    fflush(stderr);
    stderr_before = dup(STDERR_FILENO);
    stderr_now = memfd_create("stderr", MFD_CLOEXEC);
    dup2(stderr_now, STDERR_FILENO);
}

/* The text since stderr_begin, in static storage. */
static inline const char *stderr_end(void)
{
    static char text[8192];
    fflush(stderr);
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    ssize_t n = pread(stderr_now, text, sizeof text - 1, 0);
    close(stderr_now);
    text[n > 0 ? n : 0] = 0;
    return text;
}

#endif

/* The log: each thread buffers its lines and writes them to stderr, without blocking on a slow reader. */
#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log_line.h"

enum {
    /* A pipe write of this size is atomic, so a line is never torn. */
    CHUNK_BYTES = PIPE_BUF,
    PIPE_BYTES = 1 << 20,
    TORN_WAIT_MS = 100,
};

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"
};

static enum log_level lowest = LOG_INFO;
static bool as_json;
static int log_fd = STDERR_FILENO;
static bool log_fd_is_socket;
static atomic_ullong dropped;

/* The unsent lines of a thread. */
static _Thread_local struct {
    char bytes[CHUNK_BYTES];
    size_t len;
    unsigned lines;
} buffer;

/* ---- writing ---- */

/* Opens the same pipe or terminal again with O_NONBLOCK, because setting the flag on stderr would affect
 * other programs that share it. */
static void open_nonblocking(void)
{
    struct stat st;
    if (log_fd != STDERR_FILENO || fstat(STDERR_FILENO, &st) != 0)
        return;
    log_fd_is_socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode) && !isatty(STDERR_FILENO))
        return;
    int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    log_fd = fd;
    if (S_ISFIFO(st.st_mode))
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
}

bool log_setup(const char *level, const char *format)
{
    bool json = strcmp(format, "json") == 0;
    if (!json && strcmp(format, "text") != 0)
        return false;
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (strcmp(level, level_names[i]) == 0) {
            lowest = (enum log_level)i;
            as_json = json;
            open_nonblocking();
            return true;
        }
    }
    return false;
}

bool log_on(enum log_level level)
{
    return level >= lowest;
}

/* Returns false if the reader is gone or too slow. */
static bool send_bytes(const char *bytes, size_t len)
{
    bool partly_sent = false;
    while (len > 0) {
        ssize_t n = log_fd_is_socket ? send(log_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : write(log_fd, bytes, len);
        if (n >= 0) {
            partly_sent = true;
            bytes += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN && partly_sent) {
            /* Only a terminal or a socket accepts part of a chunk. Wait briefly for the rest. */
            struct pollfd p = { .fd = log_fd, .events = POLLOUT };
            if (poll(&p, 1, TORN_WAIT_MS) <= 0)
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static size_t dropped_line(char *out, size_t size, unsigned long long lines);

void log_flush(void)
{
    if (!buffer.len)
        return;
    unsigned long long lost = atomic_load_explicit(&dropped, memory_order_relaxed);
    bool sent = send_bytes(buffer.bytes, buffer.len);
    if (!sent)
        atomic_fetch_add_explicit(&dropped, buffer.lines, memory_order_relaxed);
    buffer.len = 0;
    buffer.lines = 0;
    if (sent && lost && atomic_compare_exchange_strong(&dropped, &lost, 0)) {
        char line[256];
        if (!send_bytes(line, dropped_line(line, sizeof line, lost)))
            atomic_fetch_add(&dropped, lost);
    }
}

static void buffer_line(const char *line, size_t len)
{
    if (buffer.len + len > sizeof buffer.bytes)
        log_flush();
    memcpy(buffer.bytes + buffer.len, line, len);
    buffer.len += len;
    buffer.lines++;
}

/* ---- events ---- */

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    if (!log_on(level))
        return;
    char detail[CHUNK_BYTES / 2];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(detail, sizeof detail, fmt, args) < 0)
        detail[0] = 0;
    va_end(args);

    char bytes[CHUNK_BYTES];
    struct log_line l;
    log_line_open(&l, bytes, sizeof bytes, as_json, level_names[level], event);
    log_line_detail(&l, detail);
    buffer_line(bytes, log_line_close(&l, bytes));
    log_flush();
}

void log_request(const struct log_request *r)
{
    enum log_level level = r->status >= 500 ? LOG_WARN : LOG_INFO;
    if (!log_on(level))
        return;
    char bytes[CHUNK_BYTES];
    struct log_line l;
    log_line_open(&l, bytes, sizeof bytes, as_json, level_names[level], "request");
    log_line_text(&l, "method", r->method);
    log_line_text(&l, "route", r->route);
    log_line_number(&l, "status", r->status);
    log_line_number(&l, "us", r->us);
    log_line_number(&l, "in", (long long)r->bytes_in);
    log_line_number(&l, "out", (long long)r->bytes_out);
    log_line_text(&l, "owner", r->owner);
    log_line_text(&l, "request_id", r->request_id);
    log_line_text(&l, "trace_id", r->trace_id);
    log_line_text(&l, "code", r->code);
    buffer_line(bytes, log_line_close(&l, bytes));
}

static size_t dropped_line(char *out, size_t size, unsigned long long lines)
{
    struct log_line l;
    log_line_open(&l, out, size, as_json, level_names[LOG_WARN], "log_dropped");
    log_line_number(&l, "lines", (long long)lines);
    return log_line_close(&l, out);
}

bool log_failure(const char *fmt, ...)
{
    char text[CHUNK_BYTES / 2];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = 0;
    va_end(args);
    size_t len = strlen(text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
    }
    log_flush();
    fprintf(stderr, "daybookd: %.*s\n", (int)len, text);
    return false;
}

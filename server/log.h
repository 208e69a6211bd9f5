/* Structured logs on stderr: one line an event, as text or JSON. */
#ifndef DAYBOOK_SERVER_LOG_H
#define DAYBOOK_SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* False when the level or the format is not known. */
bool log_setup(const char *level, const char *format);
bool log_on(enum log_level level);

/* One line at once: `event` is a short stable name ("db_lost"), the format its detail. A detail made of
 * name=value and name="some words" becomes fields of the JSON line; any other is its field `detail`. Any
 * thread. */
void log_event(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The line of one request. Written to a buffer of the calling thread; log_flush sends it. */
struct log_request {
    const char *method, *route, *owner, *request_id, *trace_id; /* NULL where unknown */
    int status;
    long long us;
    size_t bytes_in, bytes_out;
    const char *code; /* error code, NULL for success */
};
void log_request(const struct log_request *r);
void log_flush(void);

/* Says why a command ends, as `daybookd: …` in one line on stderr whatever the message holds. Always returns
 * false, so that `return log_failure("…")` reads as one step. */
bool log_failure(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

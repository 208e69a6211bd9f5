/* Structured logs on stderr: one line per event, as text or JSON. */
#ifndef DAYBOOK_SERVER_LOG_H
#define DAYBOOK_SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Returns false if the level or the format is unknown. */
bool log_setup(const char *level, const char *format);
bool log_on(enum log_level level);

/* Writes one line immediately. `event` is a short stable name ("db_lost"), the format is its detail. A detail
 * of name=value and name="some words" pairs becomes fields of the JSON line; any other becomes the field
 * `detail`. Safe on any thread. */
void log_event(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The log line of a request, buffered by the calling thread until log_flush. */
struct log_request {
    const char *method, *route, *owner, *request_id, *trace_id; /* NULL: unknown */
    int status;
    long long us;
    size_t bytes_in, bytes_out;
    const char *code; /* error code, NULL for success */
};
void log_request(const struct log_request *r);
void log_flush(void);

/* Prints `daybookd: …` on stderr, always as one line. Always returns false, so that `return log_failure("…")`
 * reads as one step. */
bool log_failure(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

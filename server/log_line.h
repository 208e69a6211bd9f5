/* Formats a log line as text or JSON. */
#ifndef DAYBOOK_SERVER_LOG_LINE_H
#define DAYBOOK_SERVER_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct log_line {
    char *at, *end; /* `end` leaves room for the end of the line */
    bool json;
};

/* Starts a line with the current time in `bytes` (at least 256). */
void log_line_open(struct log_line *l, char *bytes, size_t size, bool json, const char *level,
                   const char *event);
/* Appends a field. Omits NULL texts and fields that do not fit. */
void log_line_text(struct log_line *l, const char *name, const char *text);
void log_line_number(struct log_line *l, const char *name, long long value);
/* The detail of log_event. */
void log_line_detail(struct log_line *l, const char *text);
/* Ends the line and returns its length. */
size_t log_line_close(struct log_line *l, const char *bytes);

#endif

/* One line of the log, written down as text or as JSON. */
#ifndef DAYBOOK_SERVER_LOG_LINE_H
#define DAYBOOK_SERVER_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct log_line {
    char *at, *end; /* the end leaves room for what closes the line */
    bool json;
};

/* Begins a line in `bytes`, at least 256 of them, with the time of now. */
void log_line_open(struct log_line *l, char *bytes, size_t size, bool json, const char *level,
                   const char *event);
/* Fields; a text that is NULL, and a field for which there is no room, is left out. */
void log_line_text(struct log_line *l, const char *name, const char *text);
void log_line_number(struct log_line *l, const char *name, long long value);
/* The detail of log_event. */
void log_line_detail(struct log_line *l, const char *text);
/* Ends the line, and says how long it is. */
size_t log_line_close(struct log_line *l, const char *bytes);

#endif

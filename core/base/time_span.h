/* Lengths of time as people write them. */
#ifndef DAYBOOK_CORE_BASE_TIME_SPAN_H
#define DAYBOOK_CORE_BASE_TIME_SPAN_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number and a unit: "90d", "12h", "30m", "45s" or "2w". At most 100 years. */
bool time_span_parse(const char *text, int64_t *us);

#endif

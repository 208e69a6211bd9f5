/* Instants as text: RFC 3339, in and out. An instant is an int64_t of microseconds since
 * 1970-01-01T00:00:00Z. */
#ifndef DAYBOOK_CORE_BASE_TIME_TEXT_H
#define DAYBOOK_CORE_BASE_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

enum { TIME_TEXT_SIZE = 28 }; /* "2026-06-04T10:00:00.000000Z" and its NUL */

#define TIME_FIRST_US (-INT64_C(62135596800000000)) /* 0001-01-01T00:00:00Z */
#define TIME_LAST_US  INT64_C(253402300799999999)   /* 9999-12-31T23:59:59.999999Z */

/* Accepts "YYYY-MM-DDTHH:MM:SS[.digits](Z|+HH:MM|-HH:MM)" in the years 0001 to 9999, in local time and in
 * UTC; t and z may be lower case. A fraction has up to nine digits, truncated to six. No leap seconds. */
bool time_text_parse(const char *text, int64_t *us);

/* Always with six digits, so that the texts sort like the instants. Instants outside the years 1 to 9999 are
 * clamped. */
void time_text_full(int64_t us, char out[TIME_TEXT_SIZE]);
/* For responses: without the fraction when it is zero. */
void time_text_short(int64_t us, char out[TIME_TEXT_SIZE]);
/* The short text, in the arena. */
const char *time_text(struct arena *arena, int64_t us);

/* The number of the UTC day, counted from 1970-01-01; negative before that. */
int64_t time_text_day(int64_t us);

#endif

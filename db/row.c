/* Typed readers of columns. */
#include "db/row.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/time_text.h"

int64_t row_int(const struct rows *r, int row, const struct column *column, int64_t fallback)
{
    const char *text = rows_text(r, row, column);
    return text ? strtoll(text, NULL, 10) : fallback;
}

double row_double(const struct rows *r, int row, const struct column *column, double fallback)
{
    const char *text = rows_text(r, row, column);
    return text ? strtod(text, NULL) : fallback;
}

bool row_bool(const struct rows *r, int row, const struct column *column)
{
    const char *text = rows_text(r, row, column);
    return text && text[0] == 't';
}

/* Parses "2026-06-04 10:00:00.5+00". The session time zone is UTC. */
int64_t row_time_us(const struct rows *r, int row, const struct column *column, int64_t fallback)
{
    char iso[64];
    int64_t us = fallback;
    const char *text = rows_text(r, row, column);
    size_t len = text ? strlen(text) : 0;
    if (len < 22 || len >= sizeof iso || text[10] != ' ')
        return fallback;
    memcpy(iso, text, len - 3);
    iso[10] = 'T';
    iso[len - 3] = 'Z';
    iso[len - 2] = '\0';
    return time_text_parse(iso, &us) ? us : fallback;
}

struct decimal row_decimal(const struct rows *r, int row, const struct column *column)
{
    struct decimal d = decimal_from_int(0);
    const char *text = rows_text(r, row, column);
    if (text)
        (void)decimal_parse(text, &d);
    return d;
}

const char *row_copy(const struct rows *r, int row, const struct column *column, struct arena *arena)
{
    const char *text = rows_text(r, row, column);
    return text ? arena_text(arena, text) : NULL;
}

/* Typed readers of columns. */
#ifndef DAYBOOK_DB_ROW_H
#define DAYBOOK_DB_ROW_H

#include "core/base/decimal.h"
#include "db/db.h"

/* Return `fallback` for null. */
int64_t row_int(const struct rows *r, int row, const struct column *column, int64_t fallback);
double row_double(const struct rows *r, int row, const struct column *column, double fallback);
/* Null is false. */
bool row_bool(const struct rows *r, int row, const struct column *column);
/* A timestamp in microseconds since 1970; `fallback` for null. */
int64_t row_time_us(const struct rows *r, int row, const struct column *column, int64_t fallback);
/* Null is zero. A number that does not fit gives an invalid decimal. */
struct decimal row_decimal(const struct rows *r, int row, const struct column *column);
/* A copy of the text that outlives the rows; NULL for null. */
const char *row_copy(const struct rows *r, int row, const struct column *column, struct arena *arena);

#endif

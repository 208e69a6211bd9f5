/* Columns of rows as C values. */
#ifndef DAYBOOK_HANDLERS_KIT_ROW_H
#define DAYBOOK_HANDLERS_KIT_ROW_H

#include "core/base/decimal.h"
#include "server/dispatch/query.h"

/* Null is `otherwise`. */
int64_t row_int(const struct rows *r, int row, const struct column *column, int64_t otherwise);
double row_double(const struct rows *r, int row, const struct column *column, double otherwise);
/* Null is false. */
bool row_bool(const struct rows *r, int row, const struct column *column);
/* A timestamp as PostgreSQL writes it, in microseconds since 1970; null is `otherwise`. */
int64_t row_time_us(const struct rows *r, int row, const struct column *column, int64_t otherwise);
/* Null is zero; what does not fit is no valid decimal. */
struct decimal row_decimal(const struct rows *r, int row, const struct column *column);
/* A copy of the text that outlives the rows; NULL for null. */
const char *row_copy(const struct rows *r, int row, const struct column *column, struct arena *arena);

#endif

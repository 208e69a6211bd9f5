/* Rows as db/ sees them, and how they are made from a result of libpq. */
#ifndef DAYBOOK_DB_ROWS_H
#define DAYBOOK_DB_ROWS_H

#include <libpq-fe.h>

#include "core/base/arena.h"
#include "db/conn.h"

struct column_map;

struct rows {
    const struct column_map *map; /* NULL: not bound yet */
    PGresult *result;
    int *result_refs;
    int first, count; /* our range of the result */
};

/* Takes ownership of the operation's part of the result; released with the arena. */
struct rows *rows_from_result(struct arena *arena, const struct op *op, PGresult *result);

#endif

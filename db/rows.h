/* Makes rows from a result of libpq. */
#ifndef DAYBOOK_DB_ROWS_H
#define DAYBOOK_DB_ROWS_H

#include <libpq-fe.h>

#include "core/base/arena.h"
#include "db/conn.h"

/* Takes ownership of the operation's part of the result; released with the arena. */
struct rows *rows_from_result(struct arena *arena, const struct op *op, PGresult *result);

#endif

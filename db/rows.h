/* Rows as db/ makes them from results. */
#ifndef DAYBOOK_DB_ROWS_H
#define DAYBOOK_DB_ROWS_H

#include <libpq-fe.h>

#include "core/base/arena.h"
#include "db/conn.h"

/* Takes over the part of the result that is the operation's; released with the arena. */
struct rows *rows_keep(struct arena *arena, const struct op *op, PGresult *result);

#endif

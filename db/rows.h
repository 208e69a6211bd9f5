/* Rows as db/ makes them from results. */
#ifndef DAYBOOK_DB_ROWS_H
#define DAYBOOK_DB_ROWS_H

#include <libpq-fe.h>

#include "db/conn.h"
#include "server/call.h"

/* Takes over the part of the result that is the operation's; released with the call, or before it with the
 * arena. */
struct rows *rows_keep(struct call *c, const struct op *op, PGresult *result, struct arena *arena);

#endif

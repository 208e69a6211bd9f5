/* Rows as db/ makes them from results. */
#ifndef DAYBOOK_DB_ROWS_H
#define DAYBOOK_DB_ROWS_H

#include <libpq-fe.h>

#include "server/call.h"

/* Takes over the result; released with the call. */
struct rows *rows_keep(struct call *c, PGresult *result);

#endif

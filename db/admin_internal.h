/* The blocking connection that the db/admin_*.c files share. */
#ifndef DAYBOOK_DB_ADMIN_INTERNAL_H
#define DAYBOOK_DB_ADMIN_INTERNAL_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "core/base/arena.h"
#include "db/describe.h"

/* Waits for a server that is still starting. On failure prints one line on stderr and returns NULL. */
PGconn *admin_connect(const char *database_url);

/* Runs one statement. On failure prints one line on stderr that starts with `what`, and returns NULL. */
PGresult *admin_query(PGconn *pg, const char *what, const char *sql, int count, const char *const *values);
/* The same for statements without parameters and without a result. */
bool admin_run(PGconn *pg, const char *what, const char *sql);

/* Describes every statement (see db/admin.h). Leaves the connection in pipeline mode. */
bool admin_describe(PGconn *pg, struct arena *arena, const struct described **described);

/* Prints `what` and the error on stderr. Always returns false. */
bool admin_failed(PGconn *pg, const PGresult *result, const char *what);
/* True when the result is an error with this SQLSTATE. */
bool admin_has_sqlstate(const PGresult *result, const char *sqlstate);

#define SQLSTATE_NO_PRIVILEGE "42501"

#endif

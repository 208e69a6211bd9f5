/* The blocking connection that the files of db/admin share. */
#ifndef DAYBOOK_DB_ADMIN_INTERNAL_H
#define DAYBOOK_DB_ADMIN_INTERNAL_H

#include <libpq-fe.h>
#include <stdbool.h>

/* NULL: one line on stderr. Waits for a server that is still starting. */
PGconn *admin_connect(const char *database_url);

/* Runs one statement. NULL: it failed, and one line on stderr says so, beginning with `what`. */
PGresult *admin_query(PGconn *pg, const char *what, const char *sql, int count, const char *const *values);
/* The same for statements without parameters and without an answer. */
bool admin_run(PGconn *pg, const char *what, const char *sql);

/* Says what failed and returns false. */
bool admin_failed(PGconn *pg, const PGresult *result, const char *what);
/* True when the result is an error with this SQLSTATE. */
bool admin_is(const PGresult *result, const char *sqlstate);

#define SQLSTATE_NO_PRIVILEGE "42501"

#endif

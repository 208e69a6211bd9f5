/* The blocking connection that the db/admin_*.c files share. */
#ifndef DAYBOOK_DB_ADMIN_INTERNAL_H
#define DAYBOOK_DB_ADMIN_INTERNAL_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "db/describe.h"

/* Tries all servers of the URL, and prefers one that takes writes. Waits for a server that is still starting.
 * On failure prints one line on stderr and returns NULL. */
PGconn *admin_connect(const char *database_url);
/* Waits for a server that accepts connections and takes writes. */
PGconn *admin_connect_within(const char *database_url, int64_t wait_ms);

/* Runs one statement. On failure prints one line on stderr that starts with `what`, and returns NULL. */
PGresult *admin_query(PGconn *pg, const char *what, const char *sql, int count, const char *const *values);
/* The same for statements without parameters and without a result. */
bool admin_run(PGconn *pg, const char *what, const char *sql);

/* Describes every statement (see db/admin.h). Leaves the connection in pipeline mode. */
bool admin_describe(PGconn *pg, struct arena *arena, const struct described **described);

/* Creates the schema and the extensions if they are missing. */
bool admin_schema_prepare(PGconn *pg);
/* Moves extensions out of the schema daybook. Logs how, where the role may not; false: the check failed. */
bool admin_schema_move_extensions(PGconn *pg);

/* Whether a database with `applied` migrations can get the next: false if it has tables and no migration. */
bool admin_verify_untouched(PGconn *pg, int applied);
/* Whether everything that the migrations create exists. Names the first things that are missing. */
bool admin_verify(PGconn *pg);
/* Creates the role daybook_reader and its privileges if they are missing, as after a restore on another
 * server. Logs it where the role of the service may not. */
bool admin_verify_readers(PGconn *pg);
/* Lists what exists, one per line; for the test of the list that admin_verify expects. */
extern const char admin_verify_objects_sql[];

/* The message of the error, without its context. */
const char *admin_reason(PGconn *pg, const PGresult *result);
/* Prints `what` and the error on stderr. Always returns false. */
bool admin_failed(PGconn *pg, const PGresult *result, const char *what);
/* True when the result is an error with this SQLSTATE. */
bool admin_has_sqlstate(const PGresult *result, const char *sqlstate);

#define SQLSTATE_NO_PRIVILEGE "42501"
#define SQLSTATE_LOCK_TIMEOUT "55P03"
#define SQLSTATE_DEADLOCK     "40P01"

/* How long a change of the schema waits for a lock before it lets the others pass. */
#define ADMIN_LOCK_TIMEOUT "2s"

#endif

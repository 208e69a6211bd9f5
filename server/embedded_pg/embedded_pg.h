/* The private PostgreSQL that the service creates, starts, supervises and stops when no --database-url is
 * given. */
#ifndef DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_H
#define DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_H

#include <stdbool.h>

/* Creates the cluster in `data` (NULL or "": daybook in the user's data directory) if it does not exist,
 * starts it with at least `connections` as max_connections, and waits until it is ready. Restarts it after a
 * crash. On success *url is its connection string (static storage). False: one line was printed on stderr. */
bool embedded_pg_start(const char *data, int connections, const char **url);

/* The same for a command other than serve: if a service runs on `data`, uses its cluster. Without `create`, a
 * folder without a cluster is an error, and nothing is created. */
bool embedded_pg_join(const char *data, bool create, const char **url);

/* The connection string of the cluster's superuser, after either of them. */
const char *embedded_pg_admin_url(void);

/* Stops the cluster if this process started it (fast shutdown), and waits. */
void embedded_pg_stop(void);

#endif

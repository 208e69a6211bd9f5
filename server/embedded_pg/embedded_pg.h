/* The private PostgreSQL of the default start: made, started, watched and stopped by the service itself. */
#ifndef DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_H
#define DAYBOOK_SERVER_EMBEDDED_PG_EMBEDDED_PG_H

#include <stdbool.h>

/* Creates the cluster in `data` (NULL or "": daybook in the user's data directory) if it is not there, starts
 * it with room for `connections` and waits until it answers. On success *url is its connection string (static
 * storage). It is restarted when it dies. False: one line on stderr. */
bool embedded_pg_start(const char *data, int connections, const char **url);

/* The same for a command beside serving: where a service already runs on `data`, its cluster is used. */
bool embedded_pg_join(const char *data, const char **url);

/* Stops what this process started, in order (fast shutdown), and waits. */
void embedded_pg_stop(void);

#endif

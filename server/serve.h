/* Starts the event loops, and stops them on a signal. */
#ifndef DAYBOOK_SERVER_SERVE_H
#define DAYBOOK_SERVER_SERVE_H

#include <stdbool.h>

#include "server/config.h"

/* One per core, unless --loops says otherwise. */
int serve_loop_count(const struct config *config);

/* Checks the settings before the database is touched: addresses, TLS files, connections. Loads the TLS pair.
 * False: one line on stderr. Call it before serve(). */
bool serve_check(const struct config *config);
/* Binds, starts one loop per core, prints the URL, and returns the exit code after SIGTERM or SIGINT. Takes
 * over SIGTERM, SIGINT and SIGPIPE; must be called on the main thread. Without keys (`has_keys`) it serves
 * only loopback. */
int serve(const struct config *config, const char *database_url, bool has_keys);

/* Prints the method and path of every route, one per line. */
void serve_print_routes(void);

#endif

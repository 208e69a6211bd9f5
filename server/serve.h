/* Serving: the event loops between start and stop. */
#ifndef DAYBOOK_SERVER_SERVE_H
#define DAYBOOK_SERVER_SERVE_H

#include <stdbool.h>

#include "server/config.h"

/* Binds, starts one loop for each core, prints the line with the URL, and returns the exit code after SIGTERM
 * or SIGINT. SIGTERM, SIGINT and SIGPIPE are its own; it must be called on the main thread. `has_keys`:
 * without keys only loopback is served. */
int serve(const struct config *config, const char *database_url, bool has_keys);

/* Prints METHOD and path of every route, one a line. */
void serve_print_routes(void);

#endif

/* The limit of open files of the process. */
#ifndef DAYBOOK_SERVER_DESCRIPTORS_H
#define DAYBOOK_SERVER_DESCRIPTORS_H

#include "server/config.h"

/* Raises the soft limit to the hard one. Logs a warning if that is less than the service may need with that
 * many loops and database connections. */
void descriptors_prepare(const struct config *config, int loops, int db_connections);

#endif

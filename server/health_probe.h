/* Asks a running service whether it is ready: the health check of a container. */
#ifndef DAYBOOK_SERVER_HEALTH_PROBE_H
#define DAYBOOK_SERVER_HEALTH_PROBE_H

#include <stdbool.h>

/* True when GET /health/ready on that ADDRESS:PORT answers 200. False: one line on stderr. */
bool health_probe(const char *listen);

#endif

/* Asks a running service whether it is ready: the health check of a container. */
#ifndef DAYBOOK_SERVER_HEALTH_PROBE_H
#define DAYBOOK_SERVER_HEALTH_PROBE_H

#include <stdbool.h>

/* Returns whether GET /health/ready on that ADDRESS:PORT returns 200, over TLS or plain
 * HTTP. If not, prints one line on stderr. */
bool health_probe(const char *listen, bool tls);

#endif

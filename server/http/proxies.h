/* The reverse proxies that are trusted to name their clients in X-Forwarded-For. */
#ifndef DAYBOOK_SERVER_HTTP_PROXIES_H
#define DAYBOOK_SERVER_HTTP_PROXIES_H

#include "server/http/address.h"

/* Reads --trusted-proxies before the service listens. Returns false, with a message, if it is not valid. */
bool proxies_read(const char *list);
bool proxies_trust(const struct address *a);
/* The client of a request that a trusted proxy has passed on: the last address that is no trusted proxy.
 * Addresses before it were written by that client. */
struct address proxies_client(struct address proxy, const char *forwarded_for);

#endif

/* Counts open connections, in total and per client address, over all loops. */
#ifndef DAYBOOK_SERVER_HTTP_CLIENTS_H
#define DAYBOOK_SERVER_HTTP_CLIENTS_H

#include "server/http/address.h"
#include "server/problem.h"

struct client;

/* Counts a new connection. False: there are more than `max`; it is still counted. */
bool clients_connect(long long max);
void clients_disconnect(void);
long long clients_connected(void);

/* Counts a connection for its address, or a request for the address that a trusted proxy gives. *err becomes
 * ERR_TOO_MANY_CONNECTIONS_FROM_ADDRESS if there are more than `max`. */
struct client *clients_add(const struct address *address, long long max, enum err *err);
void clients_remove(struct client *c);

#endif

/* Counts open connections, in total and per client address. This is the only state that all loops share. */
#ifndef DAYBOOK_SERVER_HTTP_CLIENTS_H
#define DAYBOOK_SERVER_HTTP_CLIENTS_H

#include <sys/socket.h>

#include "server/problem.h"

struct client;

/* Counts a new connection. Its verdict is OK, ERR_TOO_MANY_CONNECTIONS or
 * ERR_TOO_MANY_CONNECTIONS_FROM_ADDRESS. */
struct client *clients_add(const struct sockaddr *address, long long max_total, long long max_per_address);
void clients_remove(struct client *c);
enum err clients_verdict(const struct client *c);
long long clients_count(void);

#endif

/* How many connections are open, in all and from each address: the one thing that all loops must know
 * together. */
#ifndef DAYBOOK_SERVER_HTTP_CLIENTS_H
#define DAYBOOK_SERVER_HTTP_CLIENTS_H

#include <sys/socket.h>

#include "server/problem.h"

struct client;

/* Counts a new connection. Its verdict is OK, ERR_TOO_MANY_CONNECTIONS or
 * ERR_TOO_MANY_CONNECTIONS_FROM_ADDRESS. */
struct client *clients_add(const struct sockaddr *address, long long most, long long most_per_address);
void clients_remove(struct client *c);
enum err client_verdict(const struct client *c);
long long clients_count(void);

#endif

/* One request over TLS to a service on this machine. */
#ifndef DAYBOOK_SERVER_HTTP_TLS_CLIENT_H
#define DAYBOOK_SERVER_HTTP_TLS_CLIENT_H

#include <stddef.h>

/* Sends the request on the connected socket and returns how many bytes of the answer were read. The
 * certificate is not verified: send nothing that is secret. */
size_t tls_client_ask(int fd, const char *request, char *answer, size_t size);

#endif

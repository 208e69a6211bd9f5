/* Asks a running service whether it is ready: the health check of a container. */
#include "server/health_probe.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/http/address.h"
#include "server/http/tls_client.h"
#include "server/log.h"

enum { TIMEOUT_S = 3 };

/* Linux connects to loopback if the address is a wildcard. */
static int connect_to(const char *listen)
{
    struct addrinfo *found = address_resolve(listen);
    struct timeval limit = { .tv_sec = TIMEOUT_S };
    int fd = -1;
    if (!found)
        return -1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            int why = errno;
            close(fd);
            errno = why;
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        log_failure("nothing answers on %s: %s", listen, strerror(errno));
    return fd;
}

/* Returns how many bytes of the answer were read. */
static size_t ask(int fd, const char *request, char *answer, size_t size)
{
    size_t len = 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return 0;
    while (len < size) {
        const ssize_t n = recv(fd, answer + len, size - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    return len;
}

bool health_probe(const char *listen, bool tls)
{
    static const char request[] =
        "GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[13] = "";
    const int fd = connect_to(listen);
    if (fd < 0)
        return false;
    const size_t room = sizeof answer - 1;
    const size_t len = tls ? tls_client_ask(fd, request, answer, room) : ask(fd, request, answer, room);
    close(fd);
    answer[len] = 0;
    int status = 0;
    if (sscanf(answer, "HTTP/1.1 %d", &status) != 1)
        return log_failure("the service on %s does not answer over %s", listen, tls ? "TLS" : "HTTP");
    return status == 200 || log_failure("the service on %s is not ready (%d)", listen, status);
}

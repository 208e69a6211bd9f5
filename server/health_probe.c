/* Asks a running service whether it is ready: the health check of a container. */
#include "server/health_probe.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/http/tls_client.h"
#include "server/log.h"

enum { TIMEOUT_S = 3, HOST_SIZE = 256 };

/* Splits "127.0.0.1:8080" or "[::1]:8080". A wildcard address becomes loopback. */
static bool split(const char *listen, char host[HOST_SIZE], const char **port)
{
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t)(colon - listen) : 0;
    if (len >= 2 && listen[0] == '[' && listen[len - 1] == ']') {
        listen++;
        len -= 2;
    }
    if (!len || len >= HOST_SIZE || !colon[1] || strcmp(colon, ":0") == 0)
        return log_failure("--listen must be the ADDRESS:PORT that the service is on");
    memcpy(host, listen, len);
    host[len] = 0;
    *port = colon + 1;
    if (strcmp(host, "0.0.0.0") == 0)
        strcpy(host, "127.0.0.1");
    else if (strcmp(host, "::") == 0)
        strcpy(host, "::1");
    return true;
}

static int connect_to(const char *host, const char *port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    struct timeval limit = { .tv_sec = TIMEOUT_S };
    int fd = -1;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed) {
        log_failure("%s:%s: %s", host, port, gai_strerror(failed));
        return -1;
    }
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
        log_failure("nothing answers on %s:%s: %s", host, port, strerror(errno));
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
    char host[HOST_SIZE], answer[13] = "";
    const char *port = NULL;
    if (!split(listen, host, &port))
        return false;
    int fd = connect_to(host, port);
    if (fd < 0)
        return false;
    const size_t room = sizeof answer - 1;
    const size_t len = tls ? tls_client_ask(fd, request, answer, room) : ask(fd, request, answer, room);
    close(fd);
    answer[len] = 0;
    int status = 0;
    if (sscanf(answer, "HTTP/1.1 %d", &status) != 1)
        return log_failure("the service on %s:%s does not answer over %s", host, port, tls ? "TLS" : "HTTP");
    return status == 200 || log_failure("the service on %s:%s is not ready (%d)", host, port, status);
}

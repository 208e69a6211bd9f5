/* A scripted server: it responds to each request with the next line of its script. */
#ifndef DAYBOOK_TESTS_SERVER_STUB_H
#define DAYBOOK_TESTS_SERVER_STUB_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/core/unit.h"

/* "200 OK\r\nName: value\r\n\r\nbody" is a response; Content-Length is added. "!…" are raw bytes, after
 * which the connection is closed. NULL never responds. The last line repeats for all further requests. */
struct stub {
    const char *const *script;
    int lines;
    int port, listener;
    pthread_t thread;
    atomic_int requests, connections;
    char seen[16384]; /* the last request */
};

struct stub_connection {
    struct stub *stub;
    int fd;
};

/* Reads one request; false at the end. */
static bool stub_read(struct stub *s, int fd)
{
    char got[sizeof s->seen];
    size_t len = 0, need = 0;
    while (!need || len < need) {
        ssize_t n = recv(fd, got + len, sizeof got - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        got[len] = '\0';
        const char *body = strstr(got, "\r\n\r\n");
        const char *header = strcasestr(got, "content-length:");
        if (body)
            need = (size_t)(body + 4 - got) + (header ? strtoul(header + 15, NULL, 10) : 0);
    }
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    memcpy(s->seen, got, len + 1);
    pthread_mutex_unlock(&one);
    return true;
}

/* False: close the connection. */
static bool stub_answer(int fd, const char *line)
{
    if (*line == '!') {
        send(fd, line + 1, strlen(line + 1), MSG_NOSIGNAL);
        return false;
    }
    const char *body = strstr(line, "\r\n\r\n") + 4;
    return dprintf(fd, "HTTP/1.1 %.*sContent-Length: %zu\r\n\r\n%s", (int)(body - 2 - line), line,
                   strlen(body), body) > 0;
}

static void *stub_serve(void *arg)
{
    struct stub_connection *c = arg;
    struct stub *s = c->stub;
    while (stub_read(s, c->fd)) {
        int n = atomic_fetch_add(&s->requests, 1);
        const char *line = s->script[n < s->lines ? n : s->lines - 1];
        if (line && !stub_answer(c->fd, line))
            break;
    }
    close(c->fd);
    free(c);
    return NULL;
}

static void *stub_accept(void *arg)
{
    struct stub *s = arg;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0;) {
        struct stub_connection *c = malloc(sizeof *c);
        *c = (struct stub_connection){ s, fd };
        s->connections++;
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, stub_serve, c), 0);
        pthread_detach(thread);
    }
    return NULL;
}

static inline void stub_start(struct stub *s, const char *const *script, int lines)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    s->script = script;
    s->lines = lines;
    s->requests = s->connections = 0;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(s->listener, 1024), 0);
    getsockname(s->listener, (struct sockaddr *)&at, &len);
    s->port = ntohs(at.sin_port);
    ck_assert_int_eq(pthread_create(&s->thread, NULL, stub_accept, s), 0);
}

static inline void stub_stop(struct stub *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

#endif

/* Protects a service that a browser on the same machine can reach from the pages that the browser shows. */
#include "server/dispatch/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/config.h"

/* Without the port: "localhost:8080" is localhost, "[::1]:8080" is [::1]. What follows a colon and is no port
 * belongs to the name: "localhost:x@example.com" is not localhost. */
static size_t name_len(const char *host, size_t len)
{
    const char *end = len && host[0] == '[' ? memchr(host, ']', len) : NULL;
    const char *rest = end ? end + 1 : memchr(host, ':', len);
    if (!rest || rest == host + len || *rest != ':')
        return len;
    for (const char *digit = rest + 1; digit < host + len; digit++)
        if (*digit < '0' || *digit > '9')
            return len;
    return (size_t)(rest - host);
}

static bool is_name(const char *host, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(host, name, len) == 0;
}

static bool is_loopback_name(const char *host, size_t len)
{
    static const char suffix[] = ".localhost";
    const size_t suffix_len = sizeof suffix - 1;
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    if (is_name(host, len, "localhost") || is_name(host, len, "[::1]"))
        return true;
    if (len > suffix_len && is_name(host + len - suffix_len, suffix_len, suffix))
        return true;
    if (len >= sizeof text)
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

bool origin_is_allowed_host(const char *host, size_t len, const char *allowed)
{
    len = name_len(host, len);
    for (const char *at = allowed + strspn(allowed, " ,"); *at; at += strspn(at, " ,")) {
        const size_t entry = strcspn(at, " ,");
        if ((entry == 1 && *at == '*') || (entry == len && strncasecmp(at, host, len) == 0))
            return true;
        at += entry;
    }
    return is_loopback_name(host, len);
}

/* After "http://" or "https://"; NULL: it begins with neither. */
static const char *after_scheme(const char *url)
{
    if (strncasecmp(url, "http://", 7) == 0)
        return url + 7;
    return strncasecmp(url, "https://", 8) == 0 ? url + 8 : NULL;
}

/* The last host of this thread that was allowed: most requests have the same. */
static _Thread_local char last_allowed[64];

static enum err check_name(struct call *c, const char *host, size_t len)
{
    if (len < sizeof last_allowed && strncmp(last_allowed, host, len) == 0 && !last_allowed[len])
        return OK;
    if (origin_is_allowed_host(host, len, c->loop->config->allowed_hosts)) {
        if (len < sizeof last_allowed)
            snprintf(last_allowed, sizeof last_allowed, "%.*s", (int)len, host);
        return OK;
    }
    return problem_set(&c->problem, ERR_MISDIRECTED_REQUEST,
                       "\"%.*s\" is not served without keys: use localhost, or name it in --allowed-hosts",
                       (int)(len > 128 ? 128 : len), host);
}

enum err origin_check_host(struct call *c)
{
    const char *host = c->exchange->headers.host;
    const char *target = c->exchange->target;
    target = target[0] == '/' ? NULL : after_scheme(target); /* most have no scheme */
    if (target)
        TRY(check_name(c, target, strcspn(target, "/?")));
    return host ? check_name(c, host, strlen(host)) : OK; /* HTTP/1.0 has none, and no browser sends it */
}

/* The page was loaded from the address that it writes to. */
static bool is_same_origin(const char *origin, const char *host)
{
    const char *from = after_scheme(origin);
    return from && host && strcasecmp(from, host) == 0;
}

static bool is_allowed_origin(const struct config *config, const char *origin)
{
    return strcmp(config->cors_origin, "*") == 0 || strcmp(config->cors_origin, origin) == 0;
}

enum err origin_check_writer(struct call *c)
{
    const struct exchange *x = c->exchange;
    const char *origin = x->headers.origin;
    if (!origin || x->method == GET || x->method == HEAD || x->method == OPTIONS)
        return OK;
    if (is_same_origin(origin, x->headers.host) || is_allowed_origin(c->loop->config, origin))
        return OK;
    return problem_set(&c->problem, ERR_FOREIGN_ORIGIN, "the origin \"%.128s\" is not that of --cors-origin",
                       origin);
}

/* IP addresses of clients, and networks of them. */
#include "server/http/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "server/log.h"

enum { V4_AT = 12, V4_BITS = 8 * V4_AT }; /* where an IPv4 address is in a mapped one */

static const unsigned char v4_prefix[V4_AT] = { [10] = 0xff, [11] = 0xff };

static void map_v4(struct address *a, const void *v4)
{
    memcpy(a->bytes, v4_prefix, V4_AT);
    memcpy(a->bytes + V4_AT, v4, 4);
}

static bool is_v4(const struct address *a)
{
    return memcmp(a->bytes, v4_prefix, V4_AT) == 0;
}

struct address address_of(const struct sockaddr *a)
{
    struct address out = { 0 };
    if (a && a->sa_family == AF_INET)
        map_v4(&out, &((const struct sockaddr_in *)(const void *)a)->sin_addr);
    else if (a && a->sa_family == AF_INET6)
        memcpy(out.bytes, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, ADDRESS_BYTES);
    return out;
}

/* The address without brackets and port. */
static void trim_port(const char **text, size_t *len)
{
    const char *close = memchr(*text, ']', *len);
    const char *colon = memchr(*text, ':', *len);
    if (*len && (*text)[0] == '[' && close) {
        *len = (size_t)(close - *text) - 1;
        (*text)++;
    } else if (colon && !memchr(colon + 1, ':', *len - (size_t)(colon + 1 - *text))) {
        *len = (size_t)(colon - *text); /* one colon: IPv4 with a port */
    }
}

bool address_parse(const char *text, size_t len, struct address *out)
{
    char copy[ADDRESS_TEXT_SIZE];
    struct in_addr v4;
    trim_port(&text, &len);
    if (!len || len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET, copy, &v4) == 1) {
        map_v4(out, &v4);
        return true;
    }
    return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

const char *address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE])
{
    const char *text = is_v4(a) ? inet_ntop(AF_INET, a->bytes + V4_AT, out, ADDRESS_TEXT_SIZE)
                                : inet_ntop(AF_INET6, a->bytes, out, ADDRESS_TEXT_SIZE);
    return text ? text : "";
}

bool address_parse_network(const char *text, size_t len, struct network *out)
{
    const char *slash = memchr(text, '/', len);
    const size_t address_len = slash ? (size_t)(slash - text) : len;
    if (!address_parse(text, address_len, &out->address))
        return false;
    const int first = is_v4(&out->address) ? V4_BITS : 0;
    out->bits = 8 * ADDRESS_BYTES;
    if (!slash)
        return true;
    const size_t digits = len - address_len - 1;
    char number[4] = "";
    if (digits < 1 || digits >= sizeof number)
        return false;
    memcpy(number, slash + 1, digits);
    out->bits = first + atoi(number);
    return strspn(number, "0123456789") == digits && out->bits <= 8 * ADDRESS_BYTES;
}

bool address_is_in(const struct network *n, const struct address *a)
{
    const size_t bytes = (size_t)n->bits / 8;
    const unsigned mask = 0xff00u >> (n->bits % 8) & 0xff;
    if (memcmp(n->address.bytes, a->bytes, bytes) != 0)
        return false;
    return mask == 0 || (n->address.bytes[bytes] & mask) == (a->bytes[bytes] & mask);
}

static bool is_port(const char *text)
{
    const size_t len = strlen(text);
    return len >= 1 && len <= 5 && strspn(text, "0123456789") == len && strtol(text, NULL, 10) <= 65535;
}

struct addrinfo *address_resolve(const char *listen)
{
    char host[256];
    const char *colon = strrchr(listen, ':'), *start = listen;
    size_t len = colon ? (size_t)(colon - listen) : sizeof host;
    if (len >= 2 && start[0] == '[' && start[len - 1] == ']') {
        start++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host || !is_port(colon + 1)) {
        log_failure("--listen %s: must be ADDRESS:PORT, with a port from 0 to 65535", listen);
        return NULL;
    }
    memcpy(host, start, len);
    host[len] = '\0';
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    const int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed)
        log_failure("--listen %s: %s", listen, gai_strerror(failed));
    return failed ? NULL : found;
}

/* IP addresses of clients, and networks of them. */
#ifndef DAYBOOK_SERVER_HTTP_ADDRESS_H
#define DAYBOOK_SERVER_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct addrinfo;

enum { ADDRESS_BYTES = 16, ADDRESS_TEXT_SIZE = 46 };

/* IPv6; an IPv4 address is mapped into it (::ffff:a.b.c.d). All zero: unknown. */
struct address {
    unsigned char bytes[ADDRESS_BYTES];
};

/* Addresses that begin with the same `bits`. */
struct network {
    struct address address;
    int bits;
};

struct address address_of(const struct sockaddr *a);
/* "192.0.2.1", "2001:db8::1", also with a port or in brackets, as proxies write them. */
bool address_parse(const char *text, size_t len, struct address *out);
const char *address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE]);

/* "192.0.2.0/24", or one address. */
bool address_parse_network(const char *text, size_t len, struct network *out);
bool address_is_in(const struct network *n, const struct address *a);

/* Resolves the setting --listen: "127.0.0.1:8080", "[::1]:8080", "localhost:0". Free the result with
 * freeaddrinfo. NULL: it is invalid or unknown; one line on stderr says why. */
struct addrinfo *address_resolve(const char *listen);

#endif

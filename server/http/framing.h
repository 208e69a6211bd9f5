/* The framing of HTTP/1.1 requests: where each head and body ends, and which heads are rejected.
 *
 * libmicrohttpd forgives what another parser in front of it may read differently: a space before a colon, a
 * folded line, a line that ends with LF alone. That is how requests are smuggled. So every byte passes here
 * first, and a head that is not exactly one request by RFC 9112 is rejected before anything interprets it. */
#ifndef DAYBOOK_SERVER_HTTP_FRAMING_H
#define DAYBOOK_SERVER_HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/problem.h"

enum {
    FRAMING_HEADERS_MAX = 64,
    FRAMING_PARAMETERS_MAX = 32,
    FRAMING_CHUNK_LINE_MAX = 256, /* bytes of a chunk's size and its extensions */
    FRAMING_TRAILERS_MAX = 4096,
};

/* What the next byte belongs to. */
enum framing_state {
    FRAMING_HEAD,
    FRAMING_BODY,       /* of a given length */
    FRAMING_CHUNK_SIZE, /* the line before a chunk */
    FRAMING_CHUNK,
    FRAMING_CHUNK_END, /* the empty line after a chunk */
    FRAMING_TRAILERS,
};

/* One per connection; starts zeroed. */
struct framing {
    enum framing_state state;
    uint64_t left;     /* bytes of the body or chunk that are still to come; the chunk size so far */
    size_t line_bytes; /* of the chunk line, or of all trailers */
    char last;         /* the previous byte of the line */
};

struct framing_verdict {
    enum err err;    /* OK: valid */
    const char *why; /* a static text */
};

/* Looks for the end of the head that starts at `bytes`. *end is its length with the empty line that ends it,
 * or 0 if it is incomplete. An error is final: more bytes cannot make the head valid. */
struct framing_verdict framing_find_end(const char *bytes, size_t len, size_t *end);

/* Checks a whole head. If it is valid, the framing continues with its body, or with the next head. */
struct framing_verdict framing_check_head(struct framing *f, const char *head, size_t len);

/* Takes bytes up to the end of the body. *taken: how many; the rest belongs to the next head. */
struct framing_verdict framing_take_body(struct framing *f, const char *bytes, size_t len, size_t *taken);

#endif

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
    FRAMING_TRAILERS_MAX = 4,     /* a request with more, or with more bytes of them, is cut */
    FRAMING_TRAILER_BYTES_MAX = 512,
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
    uint64_t left; /* bytes of the body or chunk that are still to come; the chunk size so far; trailers */
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

/* Checks an incomplete head as far as its request line: what is not HTTP at all is not waited for. */
struct framing_verdict framing_check_start(const char *head, size_t len);

/* Checks a whole head. If it is valid, the framing continues with its body, or with the next head. */
struct framing_verdict framing_check_head(struct framing *f, const char *head, size_t len);

/* Changes a valid head where libmicrohttpd would read it differently or not at all: moves whitespace at the
 * end of a value to its start, and renames Cookie headers, because it parses cookies, which nobody needs, and
 * drops the connection if there are more of them than its memory holds. */
void framing_tidy_head(char *head, size_t len);

/* Takes bytes up to the end of the body. *taken: how many; the rest belongs to the next head. The first *kept
 * bytes are then what remains of them without the extensions of chunks, which libmicrohttpd 1.0 misreads. */
struct framing_verdict framing_take_body(struct framing *f, char *bytes, size_t len, size_t *taken,
                                         size_t *kept);

#endif

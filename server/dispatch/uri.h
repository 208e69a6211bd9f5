/* Request targets: the path in segments and the query in pairs, decoded strictly. */
#ifndef DAYBOOK_SERVER_DISPATCH_URI_H
#define DAYBOOK_SERVER_DISPATCH_URI_H

#include "server/json/field.h"

enum { URI_SEGMENTS = 16, URI_PAIRS = 64 };

struct uri {
    const char *path; /* as it came, without the query */
    size_t segments;  /* "/" has none */
    /* Decoded after the path was split, so a %2F stays inside its segment. "//" and a trailing slash give an
     * empty segment, which must match nothing, not even a {parameter}. */
    const char *segment[URI_SEGMENTS];
    struct pairs query; /* in the order of the request; a name without '=' has the value "" */
};

/* `target` is the request line's: "/path?query", "http://host/path?query" or "*". ERR_BAD_REQUEST for a bad
 * escape, a fragment or too many parts, ERR_NULL_CHARACTER, ERR_INVALID_UTF8. */
enum err uri_parse(const char *target, struct arena *arena, struct uri *out, struct problem *p) must_check;

#endif

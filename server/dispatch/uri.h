/* Parses request targets into path segments and query pairs, with strict decoding. */
#ifndef DAYBOOK_SERVER_DISPATCH_URI_H
#define DAYBOOK_SERVER_DISPATCH_URI_H

#include "server/json/field.h"

enum { URI_SEGMENTS = 16, URI_PAIRS = 64 };

struct uri {
    const char *path; /* as received, without the query */
    size_t segments;  /* "/" has none */
    /* Decoded after the split, so a %2F stays inside its segment. "//" and a trailing slash give an empty
     * segment, which must not match anything, not even a {parameter}. */
    const char *segment[URI_SEGMENTS];
    struct pairs query; /* in request order; a name without '=' has the value "" */
};

/* `target` is "/path?query", "http://host/path?query" or "*". Fails with ERR_BAD_REQUEST for a bad escape, a
 * fragment or too many parts, with ERR_NULL_CHARACTER or with ERR_INVALID_UTF8. */
enum err uri_parse(const char *target, struct arena *arena, struct uri *out, struct problem *p) must_check;

#endif

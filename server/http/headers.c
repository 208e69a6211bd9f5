/* Request headers that we read, and response headers that we send. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/config.h"
#include "server/http/http_internal.h"

/* ---- requests ---- */

static const struct {
    const char *name;
    size_t offset;
} known_headers[] = {
#define HEADER(name, member) { name, offsetof(struct http_headers, member) }
    HEADER("Authorization", authorization),
    HEADER("X-API-Key", api_key),
    HEADER("X-Request-ID", request_id),
    HEADER("traceparent", traceparent),
    HEADER("Idempotency-Key", idempotency_key),
    HEADER("If-None-Match", if_none_match),
    HEADER("Accept", accept),
    HEADER("Content-Type", content_type),
    HEADER("Content-Length", content_length),
    HEADER("Transfer-Encoding", transfer_encoding),
    HEADER("Expect", expect),
    HEADER("Access-Control-Request-Method", preflight_method),
    HEADER("Host", host),
    HEADER("Origin", origin),
    HEADER("X-Forwarded-For", forwarded_for),
    HEADER("Accept-Encoding", accept_encoding),
    HEADER("Content-Encoding", content_encoding),
#undef HEADER
};

/* Compares the first letters, which rules out most names without a call. */
static bool may_be_same(const char *a, const char *b)
{
    return ((a[0] ^ b[0]) & ~0x20) == 0;
}

/* Copies the value: the daemon frees it when the request completes, and a coroutine may run longer. */
static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct exchange *x = cls;
    for (size_t i = 0; value && i < sizeof known_headers / sizeof *known_headers; i++)
        if (may_be_same(name, known_headers[i].name) && strcasecmp(name, known_headers[i].name) == 0) {
            const char **to = (const char **)(void *)((char *)&x->headers + known_headers[i].offset);
            /* A header that may be repeated is a list. */
            *to = *to ? arena_fmt(x->task->arena, "%s, %s", *to, value) : arena_text(x->task->arena, value);
        }
    return MHD_YES;
}

void headers_read(struct exchange *x)
{
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, on_header, x);
}

/* ---- replies ---- */

static void cors(struct exchange *x, struct MHD_Response *r)
{
    const char *origin = x->loop->config->cors_origin;
    if (!origin[0])
        return;
    MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(r, "Access-Control-Expose-Headers",
                            "ETag, Location, X-Request-ID, Retry-After, Idempotency-Replayed");
    if (strcmp(origin, "*") != 0)
        MHD_add_response_header(r, "Vary", "Origin");
    if (x->method == OPTIONS && x->headers.preflight_method) {
        MHD_add_response_header(r, "Access-Control-Allow-Methods", x->reply->allow);
        MHD_add_response_header(r, "Access-Control-Allow-Headers",
                                "Authorization, X-API-Key, Content-Type, Idempotency-Key, If-None-Match, "
                                "X-Request-ID, traceparent");
        MHD_add_response_header(r, "Access-Control-Max-Age", "600");
    }
}

void headers_add(struct exchange *x, struct MHD_Response *r)
{
    const struct reply *reply = x->reply;
    const bool retry = reply->status == 503 || reply->status == 429;
    char seconds[24] = "1";
    if (retry && reply->retry_after_s)
        snprintf(seconds, sizeof seconds, "%lld", (long long)reply->retry_after_s);
    const struct {
        const char *name, *value;
    } headers[] = {
        { MHD_HTTP_HEADER_CONTENT_TYPE,
          reply->status == 204 || reply->status == 304 ? NULL : reply->content_type },
        { "X-Request-ID", reply->request_id },
        { MHD_HTTP_HEADER_ETAG, reply->etag },
        { MHD_HTTP_HEADER_LOCATION, reply->location },
        { MHD_HTTP_HEADER_ALLOW, reply->allow },
        { MHD_HTTP_HEADER_CONTENT_DISPOSITION, reply->disposition },
        { "Idempotency-Replayed", reply->replayed ? "true" : NULL },
        { MHD_HTTP_HEADER_RETRY_AFTER, retry ? seconds : NULL },
        { MHD_HTTP_HEADER_WWW_AUTHENTICATE, reply->status == 401 ? "Bearer realm=\"daybook\"" : NULL },
        { MHD_HTTP_HEADER_CONNECTION, reply->close || x->http->draining ? "close" : NULL },
        { MHD_HTTP_HEADER_CACHE_CONTROL, reply->no_store        ? "no-store"
                                         : reply->cache_control ? reply->cache_control
                                         : reply->etag          ? "private, no-cache"
                                                                : NULL },
        { MHD_HTTP_HEADER_VARY, reply->vary },
        { MHD_HTTP_HEADER_CONTENT_ENCODING, reply->status == 304 ? NULL : reply->content_encoding },
        { "Content-Security-Policy", reply->content_security_policy },
        { "Referrer-Policy", reply->content_security_policy ? "no-referrer" : NULL },
        { "X-Content-Type-Options", reply->cache_control ? "nosniff" : NULL },
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (headers[i].value)
            MHD_add_response_header(r, headers[i].name, headers[i].value);
    cors(x, r);
}

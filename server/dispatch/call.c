/* Functions for handlers: replies, streams, lines of a bulk body. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/dispatch/call.h"

struct buf *call_reply_json(struct call *c, int status)
{
    c->reply.status = status;
    c->reply.content_type = "application/json";
    c->reply.body.len = 0;
    return &c->reply.body;
}

enum err call_reply_text(struct call *c, int status, const char *content_type, const char *text)
{
    struct buf *out = call_reply_json(c, status);
    c->reply.content_type = content_type;
    buf_text(out, text);
    return OK;
}

/* The q parameter of an Accept entry; 1 by default. */
static double weight_of(const char *entry)
{
    for (const char *p = entry + strcspn(entry, ",;"); *p == ';'; p += strcspn(p, ",;")) {
        p += 1 + strspn(p + 1, " \t");
        if (strncasecmp(p, "q=", 2) == 0)
            return strtod(p + 2, NULL);
    }
    return 1;
}

/* The q of a media type in an Accept header, from the most specific entry that matches; -1: none matches. */
static double accept_q(const char *accept, const char *type)
{
    double q = -1;
    int best = 0;
    size_t type_len = strlen(type), main_len = strcspn(type, "/");
    for (const char *p = accept; *p;) {
        p += strspn(p, " ,\t");
        size_t len = strcspn(p, ",;");
        size_t name = len;
        while (name && p[name - 1] == ' ')
            name--;
        int specific =
            name == type_len && strncasecmp(p, type, name) == 0                                         ? 3
            : name == main_len + 2 && strncasecmp(p, type, main_len + 1) == 0 && p[main_len + 1] == '*' ? 2
            : name == 3 && strncmp(p, "*/*", 3) == 0                                                    ? 1
                                                                                                        : 0;
        if (specific > best) {
            best = specific;
            q = weight_of(p);
        }
        p += strcspn(p, ",");
    }
    return q;
}

bool call_prefers(struct call *c, const char *type)
{
    const char *accept = c->exchange->headers.accept;
    c->reply.vary = "Accept";
    if (!accept)
        return false;
    const double q = accept_q(accept, type);
    return q > 0 && q > accept_q(accept, "application/json");
}

/* The q of a content coding, from its own entry or else from `*`; -1: the header has neither. */
static double coding_q(const char *header, const char *coding)
{
    double q = -1;
    const size_t coding_len = strlen(coding);
    for (const char *p = header; *p; p += strcspn(p, ",")) {
        p += strspn(p, " ,\t");
        const size_t len = strcspn(p, " \t,;");
        if (len == coding_len && strncasecmp(p, coding, len) == 0)
            return weight_of(p);
        if (len == 1 && *p == '*')
            q = weight_of(p);
    }
    return q;
}

bool call_accepts_gzip(struct call *c)
{
    const char *accept = c->exchange->headers.accept_encoding;
    c->reply.vary = "Accept-Encoding";
    if (!accept)
        return false;
    const double q = coding_q(accept, "gzip");
    return q > 0 && q >= coding_q(accept, "identity");
}

/* ---- the exchange ---- */

enum err call_stream_begin(struct call *c, const char *content_type)
{
    c->reply.status = 200;
    c->reply.content_type = content_type;
    return exchange_stream_begin(c->exchange);
}

enum err call_stream_wait(struct call *c)
{
    return exchange_stream_wait(c->exchange);
}

enum err call_stream_write(struct call *c, const void *bytes, size_t len)
{
    return exchange_stream_write(c->exchange, bytes, len);
}

enum err call_body_line(struct call *c, char **line, size_t *len, int64_t *number)
{
    return exchange_line(c->exchange, line, len, number);
}

void call_yield(struct call *c)
{
    task_yield(&c->task);
}

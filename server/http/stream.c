/* Answers that are written while they are sent: the writer waits for a slow client, and holds nothing but
 * this buffer. */
#include <stdlib.h>
#include <string.h>

#include "server/coro.h"
#include "server/http/dispatch.h"
#include "server/http/exchange.h"

enum { HIGH_WATER = 128 * 1024, LOW_WATER = 32 * 1024, READ_BYTES = 32 * 1024 };

static struct exchange *exchange_of(struct call *c)
{
    return container_of(c, struct exchange, call);
}

void exchange_wake(struct exchange *x)
{
    struct coro *waiting = x->call.coro;
    if (waiting && !x->call.op && !x->call.lease && !x->call.wait) {
        x->call.coro = NULL;
        coro_resume(waiting);
    }
}

static ssize_t on_read(void *cls, uint64_t pos, char *to, size_t most)
{
    (void)pos;
    struct exchange *x = cls;
    struct stream *s = &x->stream;
    size_t n = s->len - s->sent;
    x->http->wanted = true; /* there may be room for more at once, and the end takes a turn of its own */
    if (n == 0) {
        if (s->failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        x->suspended = true;
        MHD_suspend_connection(x->connection);
        return 0;
    }
    if (n > most)
        n = most;
    memcpy(to, s->data + s->sent, n);
    s->sent += n;
    x->sent_bytes += n;
    if (s->sent == s->len)
        s->sent = s->len = 0;
    if (s->len - s->sent < LOW_WATER)
        exchange_wake(x);
    return (ssize_t)n;
}

struct MHD_Response *stream_response(struct exchange *x)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READ_BYTES, on_read, x, NULL);
}

void stream_gone(struct exchange *x)
{
    x->stream.gone = true;
    exchange_wake(x);
}

enum err stream_begin(struct call *c, const char *content_type)
{
    struct exchange *x = exchange_of(c);
    c->reply.status = 200;
    c->reply.content_type = content_type;
    c->stream = &x->stream;
    x->stream.gone = c->method == HEAD;
    exchange_answered(c);
    return OK;
}

enum err stream_write(struct call *c, const void *bytes, size_t len)
{
    struct exchange *x = exchange_of(c);
    struct stream *s = &x->stream;
    while (!s->gone && s->len - s->sent > HIGH_WATER) {
        if (x->http->abandoned)
            return ERR_SHUTTING_DOWN;
        c->coro = coro_self();
        coro_wait();
    }
    if (s->gone || s->failed)
        return ERR_BAD_REQUEST;
    if (!len)
        return OK;
    if (s->sent) {
        memmove(s->data, s->data + s->sent, s->len - s->sent);
        s->len -= s->sent;
        s->sent = 0;
    }
    if (s->cap - s->len < len) {
        s->cap = (s->len + len) * 2;
        s->data = realloc(s->data, s->cap);
        if (!s->data)
            abort();
    }
    memcpy(s->data + s->len, bytes, len);
    s->len += len;
    exchange_resume(x);
    return OK;
}

void stream_end(struct call *c, enum err err)
{
    struct exchange *x = exchange_of(c);
    x->stream.ended = true;
    x->stream.failed = err != OK;
    exchange_resume(x);
}

/* Streamed replies. The writer waits for a slow client, and holds only this buffer meanwhile. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "server/http/http_internal.h"

enum {
    HIGH_WATER = 16 * 1024,
    LOW_WATER = 8 * 1024,
    READ_BYTES = 8 * 1024,
    LARGE_BODY = 128 * 1024,
    TRIM_US = 1000 * 1000
};

static bool writer_waits(const struct exchange *x)
{
    return x->task->wait == &x->stream.wait;
}

static void release_buffer(struct stream *s)
{
    free(s->data);
    s->data = NULL;
    s->len = s->sent = s->cap = 0;
}

static ssize_t on_read(void *cls, uint64_t pos, char *to, size_t max)
{
    (void)pos;
    struct exchange *x = cls;
    struct stream *s = &x->stream;
    size_t n = s->len - s->sent;
    x->http->run_needed = true; /* the socket may take more, and the end of the stream needs another run */
    if (n == 0) {
        if (s->failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        exchange_set_state(x, EXCHANGE_DRAINED);
        return 0;
    }
    if (n > max)
        n = max;
    memcpy(to, s->data + s->sent, n);
    s->sent += n;
    x->sent_bytes += n;
    if (s->sent == s->len)
        release_buffer(s);
    if (s->len - s->sent < LOW_WATER && writer_waits(x))
        task_wake(&s->wait, OK);
    return (ssize_t)n;
}

/* The allocator keeps what hundreds of streams or large bodies have freed, because smaller blocks lie
 * between. */
static void on_trim(struct timer *t)
{
    (void)t;
    malloc_trim(0);
}

void stream_free(struct exchange *x)
{
    struct http *h = x->http;
    if (!x->stream.started && x->body.cap < LARGE_BODY)
        return;
    release_buffer(&x->stream);
    h->trim.fire = on_trim;
    if (!h->trim.armed && !h->abandoned)
        loop_timer(h->loop, &h->trim, TRIM_US);
}

struct MHD_Response *stream_response(struct exchange *x)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READ_BYTES, on_read, x, NULL);
}

void stream_gone(struct exchange *x)
{
    x->stream.gone = true;
    if (writer_waits(x))
        task_wake(&x->stream.wait, ERR_BAD_REQUEST);
    else
        (void)task_resume_yielded(x->task);
}

/* There is more to send, or the stream has ended. */
static void resume_sending(struct exchange *x)
{
    x->http->run_needed = true;
    if (x->state == EXCHANGE_DRAINED)
        exchange_set_state(x, EXCHANGE_SENDING);
}

enum err exchange_stream_begin(struct exchange *x)
{
    x->stream.started = true;
    x->stream.gone |= x->method == HEAD;
    exchange_answered(x);
    return OK;
}

enum err exchange_stream_wait(struct exchange *x)
{
    struct stream *s = &x->stream;
    while (!s->gone && s->len - s->sent > HIGH_WATER) {
        if (x->http->abandoned)
            return ERR_SHUTTING_DOWN;
        TRY(task_wait(x->task, &s->wait));
    }
    return s->gone || s->failed ? ERR_BAD_REQUEST : OK;
}

static void make_room(struct stream *s, size_t len)
{
    if (s->sent) {
        memmove(s->data, s->data + s->sent, s->len - s->sent);
        s->len -= s->sent;
        s->sent = 0;
    }
    if (s->cap - s->len >= len)
        return;
    s->cap = s->len + len;
    s->data = memory_resize(s->data, s->cap);
}

enum err exchange_stream_write(struct exchange *x, const void *bytes, size_t len)
{
    struct stream *s = &x->stream;
    TRY(exchange_stream_wait(x));
    if (!len)
        return OK;
    make_room(s, len);
    memcpy(s->data + s->len, bytes, len);
    s->len += len;
    resume_sending(x);
    return OK;
}

void exchange_stream_end(struct exchange *x, enum err err)
{
    x->stream.ended = true;
    x->stream.failed = err != OK;
    resume_sending(x);
}

/* Streamed replies. The writer waits for a slow client, and holds only this buffer meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "server/http/http_internal.h"

enum { HIGH_WATER = 128 * 1024, LOW_WATER = 32 * 1024, READ_BYTES = 32 * 1024 };

static bool writer_waits(const struct exchange *x)
{
    return x->task->wait == &x->stream.wait;
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
        s->sent = s->len = 0;
    if (s->len - s->sent < LOW_WATER && writer_waits(x))
        task_wake(&s->wait, OK);
    return (ssize_t)n;
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

/* Waits until the buffer has room. Fails if the client has disconnected or the service stops. */
static enum err wait_for_client(struct exchange *x)
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
    s->cap = (s->len + len) * 2;
    s->data = realloc(s->data, s->cap);
    if (!s->data)
        abort();
}

enum err exchange_stream_write(struct exchange *x, const void *bytes, size_t len)
{
    struct stream *s = &x->stream;
    TRY(wait_for_client(x));
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

/* One request from match to answer, as handlers, the database and the HTTP edge see it. */
#ifndef DAYBOOK_SERVER_CALL_H
#define DAYBOOK_SERVER_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "server/http/uri.h"
#include "server/json/field.h"
#include "server/loop.h"
#include "server/problem.h"

struct call;
struct rows;
struct op;
struct conn;
struct coro;
struct lease;
struct query;
struct stream;
struct spool;

enum method { GET, POST, PUT, PATCH, DELETE, METHOD_COUNT, HEAD = METHOD_COUNT, OPTIONS, METHOD_OTHER };

/* Each role may do what the ones before it may. */
enum role { ROLE_PUBLIC, ROLE_READER, ROLE_RESEARCHER, ROLE_AGENT, ROLE_ADMIN };

struct route {
    enum method method;
    const char *path;                   /* "/v1/lessons/{id}" */
    enum err (*handle)(struct call *c); /* NULL: the answer is that of `query` */
    /* Checks the input and completes it in c->in (may be NULL), before the query. */
    enum err (*prepare)(struct call *c);
    const struct query *query;
    enum err (*render)(struct call *c,
                       const struct rows *r); /* the rows as the answer; NULL: by their shape */
    int status;                               /* of that answer; 0: 200 */
    const struct field *fields;
    size_t in_size; /* of the struct that `fields` describe */
    enum role role; /* the least role that may call it */
    bool waits;     /* needs several steps: runs as a coroutine */
    bool safe; /* a POST that only reads, or that goes on where it was broken off: no Idempotency-Key is kept
                */
    bool models; /* it asks a model: its time-out is longer, and it holds no transaction while it waits */
    const char *models_with; /* it waits and asks a model when this parameter is in the query */
    bool lines; /* its body is NDJSON of up to max_bulk_bytes, read with body_line as a coroutine; each line
                   is answered by itself, so no Idempotency-Key is kept */
    const struct field *line_fields; /* of each line, in routes with `lines` */
};

#define END_ROUTES { .path = NULL }

/* The request headers that anything here looks at. */
struct call_headers {
    const char *authorization, *api_key, *request_id, *traceparent, *idempotency_key, *if_none_match, *accept,
        *content_type, *content_length, *transfer_encoding, *expect, *preflight_method;
    bool ambiguous; /* Content-Length came twice */
};

struct reply {
    int status;
    const char *content_type;
    struct buf body;
    const char *location, *allow, *etag;
    bool replayed;  /* the stored answer of an earlier request */
    bool close;     /* the connection is not to be used again */
    bool by_accept; /* another Accept header would have got another answer */
};

struct call {
    struct loop *loop;
    const struct route *route; /* NULL: no route matched */
    struct arena arena;
    enum method method;
    struct uri uri;
    struct pairs path; /* the values of the route's {parameters} */
    struct call_headers headers;
    const char *request_id, *trace_id, *owner;
    enum role role;
    const char
        *now; /* RFC 3339: the server's clock when the request came, the default for the caller's time */
    struct buf body;
    struct spool *spool;   /* or the file that holds it, in routes with `lines` */
    void *in;              /* the struct that route->fields describe, decoded */
    uint64_t cursor_scope; /* what its cursors are bound to */

    struct problem problem;
    enum err error; /* of the answer; OK: none */
    struct reply reply;
    struct stream *stream;  /* the answer is one, and has begun */
    bool waits;             /* a coroutine runs it, and still uses it */
    bool auth_waits;        /* until the keys are loaded again */
    struct call_wait *wait; /* what else it waits for */
    void *claim;            /* on its Idempotency-Key, where the answer is stored by its own transaction */
    bool settled;           /* which has happened */

    /* Work in passing, set by a handler that waits: done when the answer has been given and the loop has had
     * nothing else to do for a while, so perhaps never. */
    void (*afterwards)(struct call *c);
    void *afterwards_of;

    /* kept by db/ */
    struct rows *rows; /* everything it was given, released with the call */
    struct op *op;     /* the statement it waits for */
    void (*rows_done)(struct call *c, struct rows *r, enum err err); /* takes the rows of that statement */
    struct conn *tx;                           /* the connection of its open transaction */
    struct lease *lease;                       /* or the connection that it waits for */
    struct coro *coro;                         /* waits here */
    enum err wake;                             /* why it was woken before its statement was done */
    enum err (*before_commit)(struct call *c); /* the last step of each of its transactions */
    bool retry; /* its transaction failed only because of others, and may run again */
};

/* It may ask a model. */
bool call_models(const struct call *c);
/* How long it may take. */
int64_t call_limit_ms(const struct call *c);

/* The work is done: the answer is what `reply` holds, or the problem of `err`. Called once, by dispatch for
 * handlers that return, by the database for those that do not wait. */
void call_answer(struct call *c, enum err err);

/* Answers. Handlers call at most one of these; a handler that returns an error has the problem made by
 * dispatch. */
struct buf *reply_json(struct call *c, int status); /* append the document to it */
enum err reply_text(struct call *c, int status, const char *content_type, const char *text);

/* Streams: begin, then write as often as needed; each write waits while the client is slow, holding nothing
 * else. ERR_BAD_REQUEST from a write means that the client has gone. Only in routes that wait. */
enum err stream_begin(struct call *c, const char *content_type) must_check;
enum err stream_write(struct call *c, const void *bytes, size_t len) must_check;
void stream_end(struct call *c, enum err err); /* by dispatch */

/* The next line of the body, without its end; blank ones are left out, but counted in *number (from 1). *line
 * is NULL at the end; it has a NUL behind it, and lives until the next one is asked for. ERR_LINE_TOO_LONG
 * (more than max_body_bytes) is about that line alone: the next can be asked for. Any other error ends the
 * work: the client has gone, the service stops, the file cannot be read. Lets the loop serve others by
 * itself. Only in routes with `lines`. */
enum err body_line(struct call *c, char **line, size_t *len, int64_t *number) must_check;

/* Lets the loop serve others when its turn has lasted long: for work that neither waits for the database nor
 * asks for lines. Only in routes that wait. */
void call_breathe(struct call *c);

/* Waiting for something that is neither the database nor the client: a worker, another server. call_wait
 * returns what call_wake was given, or why the call may not wait any longer (its time is up, the service
 * stops); then `give_up` has been called, after which nobody may wake it. Only in routes that wait. */
struct call_wait {
    struct call *call;
    void (*give_up)(struct call_wait *w);
    enum err why;
};
enum err call_wait(struct call *c, struct call_wait *w) must_check;
void call_wake(struct call_wait *w, enum err why);

/* True when the client prefers `type` to application/json (by its Accept header). */
bool call_prefers(struct call *c, const char *type);

#endif

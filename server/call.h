/* One request as handlers see it: who asks, for what, when, and the reply. */
#ifndef DAYBOOK_SERVER_CALL_H
#define DAYBOOK_SERVER_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "server/dispatch/uri.h"
#include "server/http/exchange.h"
#include "server/json/field.h"
#include "server/role.h"
#include "server/task.h"

struct call;
struct claim;
struct query;
struct rows;

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
    bool safe;      /* a POST that only reads, or that resumes where it was interrupted: no Idempotency-Key is
                       stored */
    bool models;    /* it asks a model: its time-out is longer, and it holds no transaction while it waits */
    const char *models_with; /* it waits and asks a model when this parameter is in the query */
    bool lines; /* its body is NDJSON of up to max_bulk_bytes, read with body_line as a coroutine; each line
                   gets a result of its own, so no Idempotency-Key is stored */
    const struct field *line_fields; /* of each line, in routes with `lines` */
};

#define END_ROUTES { .path = NULL }

struct call {
    struct task task;          /* works for it, and is what db/, workers and other servers know of it */
    struct exchange *exchange; /* its connection, headers and body */
    struct loop *loop;
    struct arena arena;        /* memory for as long as the request */
    const struct route *route; /* NULL: no route matched */
    struct uri uri;
    struct pairs path; /* the values of the route's {parameters} */
    const char *request_id;
    const char
        *now; /* RFC 3339: the server's clock when the request came, the default for the caller's time */
    const char *key_hash; /* of the API key that was sent; NULL: not computed yet, or none */
    const char *owner;    /* NULL: not known yet */
    enum role role;
    void *in;              /* the struct that route->fields describe, decoded */
    uint64_t cursor_scope; /* what its cursors are bound to */
    struct problem problem;
    struct reply reply;
    struct claim *claim; /* on its Idempotency-Key; NULL: none, or its transaction holds a lock instead */
    bool left_pending;   /* it stored something without a vector: server/backfill is told when it has ended */
};

/* It may ask a model. */
bool call_models(const struct call *c);
/* How long it may take. */
int64_t call_limit_ms(const struct call *c);

/* The work is done: the reply is what c->reply holds, or the problem of `err`. Called once, by dispatch for
 * handlers that return, and by whoever runs the statement of a handler that does not wait. */
void call_answer(struct call *c, enum err err);

/* Replies. Handlers call at most one of these; a handler that returns an error has the problem made by
 * dispatch. */
struct buf *reply_json(struct call *c, int status); /* append the document to it */
enum err reply_text(struct call *c, int status, const char *content_type, const char *text);

/* Streams: begin, then write as often as needed; each write waits while the client is slow, holding nothing
 * else. ERR_BAD_REQUEST from a write means that the client has gone. Only in routes that wait. */
enum err stream_begin(struct call *c, const char *content_type) must_check;
enum err stream_write(struct call *c, const void *bytes, size_t len) must_check;

/* The next line of the body, without its end; blank ones are left out, but counted in *number (from 1). *line
 * is NULL at the end; it has a NUL behind it, and lives until the next one is asked for. ERR_LINE_TOO_LONG
 * (more than max_body_bytes) is about that line alone: the next can be asked for. Any other error ends the
 * work: the client has gone, the service stops, the file cannot be read. Lets the loop serve others by
 * itself. Only in routes with `lines`. */
enum err body_line(struct call *c, char **line, size_t *len, int64_t *number) must_check;

/* Lets the loop serve others when its turn has lasted long: for work that neither waits for the database nor
 * asks for lines. Only in routes that wait. */
void call_breathe(struct call *c);

/* True when the client prefers `type` to application/json (by its Accept header). */
bool call_prefers(struct call *c, const char *type);

#endif

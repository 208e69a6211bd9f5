/* One request as handlers see it: owner, input, time, reply. */
#ifndef DAYBOOK_SERVER_DISPATCH_CALL_H
#define DAYBOOK_SERVER_DISPATCH_CALL_H

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
    enum err (*handle)(struct call *c); /* NULL: `query` makes the reply */
    /* Validates and completes c->in before the query. May be NULL. */
    enum err (*prepare)(struct call *c);
    const struct query *query;
    /* Runs `other_query` instead for a call for which `query_if` is true. Both have the same fields and
     * columns. */
    const struct query *other_query;
    bool (*query_if)(const struct call *c);
    const struct query *exports; /* the query that `handle` streams (handlers/kit/export.h) */
    enum err (*render)(struct call *c,
                       const struct rows *r); /* renders the rows; NULL: by the statement's shape */
    int status;                               /* of the rendered reply; 0: 200 */
    const struct field *fields;
    size_t in_size; /* size of the struct that `fields` describes */
    enum role role; /* minimum role */
    bool waits;     /* runs as a coroutine */
    bool safe; /* a POST that only reads, or that resumes after an interruption: needs no Idempotency-Key */
    /* For a route that is safe unless its input asks it to store something: whether this call's does. */
    bool (*stores)(const struct call *c);
    bool models;             /* asks a model: longer time-out, and no open transaction while it waits */
    const char *models_with; /* like `models`, but only if the URL has this query parameter */
    bool lines; /* the body is NDJSON of up to max_bulk_bytes, read with call_body_line in a coroutine. Each
                   line gets its own result, so no Idempotency-Key is stored */
    const struct field *line_fields; /* fields of a line, if `lines` */
};

#define END_ROUTES { .path = NULL }

struct call {
    struct task task;          /* the part that db/, workers and server/remote see */
    struct exchange *exchange; /* its connection, headers and body */
    struct loop *loop;
    struct arena arena;        /* released when the request ends */
    const struct route *route; /* NULL: no route matched */
    struct uri uri;
    struct pairs path; /* the values of the route's {parameters} */
    const char *request_id;
    const char
        *now; /* RFC 3339: the server's clock when the request arrived; the default of `as_of` and similar */
    const unsigned char *key_hash; /* SHA-256 of the API key; NULL: not computed yet */
    const char *owner;             /* NULL: not authenticated yet */
    enum role role;
    bool rate_taken;       /* the request was counted for the rate of its key */
    bool failure_taken;    /* it was counted as a failure of its address, until its key is found */
    void *in;              /* the decoded struct that route->fields describes */
    uint64_t cursor_scope; /* its cursors are valid only within this scope */
    struct problem problem;
    struct reply reply;
    struct claim *claim; /* on its Idempotency-Key; NULL: no key, or a transaction holds a lock instead */
    bool left_pending;   /* it stored something without a vector: server/backfill is told when it has ended */
    bool left_unsealed;  /* it stored events of a journal: server/sealer is told, likewise */
};

/* Whether the call may ask a model. */
bool call_models(const struct call *c);
/* The time limit of the call. */
int64_t call_limit_ms(const struct call *c);
/* A claim outlives the time limit of its call by this much. */
enum { CALL_CLAIM_GRACE_MS = 5000 };

/* Completes the call with c->reply, or with the problem document of `err`. Called exactly once: by dispatch
 * after the handler returns, or by the callback of the query if the route does not wait. */
void call_answer(struct call *c, enum err err);

/* Replies. A handler calls at most one of these. If it returns an error, dispatch makes the reply. */
struct buf *call_reply_json(struct call *c, int status); /* append the document to it */
enum err call_reply_text(struct call *c, int status, const char *content_type, const char *text);

/* Streams: begin, then write as often as needed. A write waits while the client is slow. ERR_BAD_REQUEST from
 * a write means that the client has disconnected. Only in routes that wait. */
enum err call_stream_begin(struct call *c, const char *content_type) must_check;
/* Waits for a slow client. Call it before memory is used for what will be written next. */
enum err call_stream_wait(struct call *c) must_check;
enum err call_stream_write(struct call *c, const void *bytes, size_t len) must_check;

/* Reads the next line of the body, without its newline. Blank lines are skipped, but counted in *number (from
 * 1). *line is NUL-terminated and valid until the next call; NULL: end of the body. After ERR_LINE_TOO_LONG
 * (more than max_body_bytes) the next line can be read. Any other error is final: the client has
 * disconnected, the service stops, or the file cannot be read. Yields to the loop by itself. Only in routes
 * with `lines`. */
enum err call_body_line(struct call *c, char **line, size_t *len, int64_t *number) must_check;

/* Yields to the loop if this turn has lasted long. Call it in loops that neither wait for the database nor
 * read lines. Only in routes that wait. */
void call_yield(struct call *c);

/* Whether the Accept header prefers `type` to application/json. */
bool call_prefers(struct call *c, const char *type);
/* Whether the Accept-Encoding header asks for gzip, and not rather for no coding. */
bool call_accepts_gzip(struct call *c);

#endif

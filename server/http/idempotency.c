/* Idempotency keys: a request that comes again is answered as the first time, and done once. */
#include "server/http/idempotency.h"

#include <stdlib.h>
#include <string.h>

#include "core/sha256.h"
#include "db/db.h"
#include "server/http/route.h"

/* What the statements of db/idempotency.sql take. */
struct stored {
    const char *key, *request_hash, *content_type, *location, *body;
    int64_t status;
};

static const struct field stored_fields[] = {
    FIELD(COMPUTED, KIND_TEXT, struct stored, key),
    FIELD(COMPUTED, KIND_TEXT, struct stored, request_hash),
    FIELD(COMPUTED, KIND_TEXT, struct stored, content_type),
    FIELD(COMPUTED, KIND_TEXT, struct stored, location),
    FIELD(COMPUTED, KIND_TEXT, struct stored, body),
    FIELD(COMPUTED, KIND_INT, struct stored, status),
    END_FIELDS,
};

static const char *request_hash(struct call *c)
{
    struct buf all = { .arena = &c->arena };
    buf_fmt(&all, "%s %s", method_name(c->method), c->uri.path);
    for (size_t i = 0; i < c->uri.query.count; i++)
        buf_fmt(&all, "&%s=%s", c->uri.query.items[i].name, c->uri.query.items[i].value);
    buf_char(&all, '\n');
    buf_add(&all, c->body.data, c->body.len);
    char *hex = arena_alloc(&c->arena, SHA256_HEX_SIZE);
    sha256_hex(all.data, all.len, hex);
    return hex;
}

static enum err replay(struct call *c, const struct rows *r, const char *hash)
{
    if (strcmp(rows_text(r, 0, "request_hash"), hash) != 0)
        return ERR_IDEMPOTENCY_CONFLICT;
    reply_json(c, atoi(rows_text(r, 0, "status")));
    c->reply.content_type = arena_text(&c->arena, rows_text(r, 0, "content_type"));
    const char *location = rows_text(r, 0, "location");
    c->reply.location = location ? arena_text(&c->arena, location) : NULL;
    buf_add(&c->reply.body, rows_text(r, 0, "body"), rows_bytes(r, 0, "body"));
    c->reply.replayed = true;
    return OK;
}

/* A refusal is an answer too, and is kept; a failure of ours is not. */
static enum err refusal(struct call *c, enum err err)
{
    if (err_status(err) >= 500 || c->retry)
        return err;
    TRY(db_undo_to_savepoint(c));
    struct buf *out = reply_json(c, err_status(err));
    c->reply.content_type = "application/problem+json";
    c->reply.location = NULL;
    problem_json(out, err, &c->problem, c->request_id);
    c->error = err;
    return OK;
}

static enum err once(struct call *c)
{
    struct stored in = { .key = c->headers.idempotency_key, .request_hash = request_hash(c) };
    struct rows *r;
    TRY(db_rows_from(c, &IDEMPOTENCY_LOCK, stored_fields, &in, &r));
    if (rows_text(r, 0, "locked")[0] != 't')
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    TRY(db_rows_from(c, &IDEMPOTENCY_FIND, stored_fields, &in, &r));
    if (rows_count(r))
        return replay(c, r, in.request_hash);
    TRY(db_savepoint(c));
    enum err err = c->route->handle(c);
    if (err != OK)
        TRY(refusal(c, err));
    in.status = c->reply.status;
    in.content_type = c->reply.content_type;
    in.location = c->reply.location;
    in.body = buf_string(&c->reply.body);
    return db_rows_from(c, &IDEMPOTENCY_STORE, stored_fields, &in, &r);
}

enum err idempotency_run(struct call *c)
{
    return db_tx(c, once);
}

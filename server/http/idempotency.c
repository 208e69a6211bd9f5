/* Idempotency keys: a request that comes again is answered as the first time, and done once. */
#include "server/http/idempotency.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"
#include "db/db.h"
#include "server/dispatch/query.h"
#include "server/http/route.h"
#include "server/id.h"

enum { CLAIM_GRACE_MS = 5000, CLAIM_TRIES = 2 };

/* What the statements of db/idempotency.sql take. */
struct stored {
    const char *key, *request_hash, *content_type, *location, *body, *claim;
    int64_t status, claim_ms;
    bool passing; /* the answer is not to be kept */
};

static const struct field stored_fields[] = {
    FIELD(COMPUTED, KIND_TEXT, struct stored, key),
    FIELD(COMPUTED, KIND_TEXT, struct stored, request_hash),
    FIELD(COMPUTED, KIND_TEXT, struct stored, content_type),
    FIELD(COMPUTED, KIND_TEXT, struct stored, location),
    FIELD(COMPUTED, KIND_TEXT, struct stored, body),
    FIELD(COMPUTED, KIND_INT, struct stored, status),
    FIELD(COMPUTED, KIND_UUID, struct stored, claim),
    FIELD(COMPUTED, KIND_INT, struct stored, claim_ms),
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
    if (strcmp(rows_text(r, 0, "status"), "0") == 0)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    reply_json(c, atoi(rows_text(r, 0, "status")));
    c->reply.content_type = arena_text(&c->arena, rows_text(r, 0, "content_type"));
    const char *location = rows_text(r, 0, "location");
    c->reply.location = location ? arena_text(&c->arena, location) : NULL;
    buf_add(&c->reply.body, rows_text(r, 0, "body"), rows_bytes(r, 0, "body"));
    c->reply.replayed = true;
    return OK;
}

/* A refusal is an answer too, and is kept; a failure of ours is not, nor what another configuration would
 * have done, nor what only another request stood in the way of. */
static bool is_refusal(const struct call *c, enum err err)
{
    return err_status(err) < 500 && err != ERR_MODEL_NOT_CONFIGURED && err != ERR_REFLECTION_RUNNING &&
           !c->retry;
}

void idempotency_failed_beside(struct call *c, enum err err)
{
    struct stored *claim = c->claim;
    if (claim && !is_refusal(c, err))
        claim->passing = true;
}

static void refuse(struct call *c, enum err err)
{
    struct buf *out = reply_json(c, err_status(err));
    c->reply.content_type = "application/problem+json";
    c->reply.location = NULL;
    problem_json(out, err, &c->problem, c->request_id);
    c->error = err;
}

static void take_answer(struct stored *in, struct call *c)
{
    in->status = c->reply.status;
    in->content_type = c->reply.content_type;
    in->location = c->reply.location;
    in->body = buf_string(&c->reply.body);
}

static enum err once(struct call *c, void *arg)
{
    (void)arg;
    struct stored in = { .key = c->headers.idempotency_key, .request_hash = request_hash(c) };
    struct rows *r;
    TRY(db_rows_from(c, &IDEMPOTENCY_LOCK, stored_fields, &in, &r));
    if (rows_text(r, 0, "locked")[0] != 't')
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    TRY(db_rows_from(c, &IDEMPOTENCY_FIND, stored_fields, &in, &r));
    if (rows_count(r))
        return replay(c, r, in.request_hash);
    TRY(db_savepoint(c));
    enum err err = route_run(c);
    if (err != OK) {
        if (!is_refusal(c, err))
            return err;
        TRY(db_undo_to_savepoint(c));
        refuse(c, err);
    }
    take_answer(&in, c);
    return db_rows_from(c, &IDEMPOTENCY_STORE, stored_fields, &in, &r);
}

/* ---- requests that hold no transaction while they wait ---- */

/* In the transaction that makes the answer, so that it is kept if and only if what it says is done. */
static enum err settle(struct call *c)
{
    struct rows *r;
    struct stored *claim = c->claim;
    if (!claim || claim->passing || !c->reply.status)
        return OK;
    take_answer(claim, c);
    TRY(db_rows_from(c, &IDEMPOTENCY_SETTLE, stored_fields, claim, &r));
    if (rows_count(r) == 0)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    c->settled = true;
    return OK;
}

/* The handler's error, or that of keeping its answer, where no transaction of the handler's has kept it. */
static enum err end_claim(struct call *c, enum err err)
{
    struct rows *r;
    const struct stored *claim = c->claim;
    if (err != OK && is_refusal(c, err) && !c->settled) {
        refuse(c, err);
        err = OK;
    }
    if (err == OK && !c->settled)
        err = settle(c);
    if (claim->passing ||
        (err != OK && err != ERR_OUTCOME_UNKNOWN)) /* what is settled has no claim any more */
        (void)!db_rows_from(c, &IDEMPOTENCY_RELEASE, stored_fields, claim, &r);
    return err;
}

static enum err once_claimed(struct call *c)
{
    struct stored *in = arena_alloc(&c->arena, sizeof *in);
    *in = (struct stored){ .key = c->headers.idempotency_key,
                           .request_hash = request_hash(c),
                           .claim = id_new(&c->arena),
                           .claim_ms = call_limit_ms(c) + CLAIM_GRACE_MS };
    struct rows *r;
    for (int i = 0; i < CLAIM_TRIES; i++) {
        TRY(db_rows_from(c, &IDEMPOTENCY_CLAIM, stored_fields, in, &r));
        if (rows_count(r)) {
            c->claim = in;
            c->before_commit = settle;
            return end_claim(c, route_run(c));
        }
        TRY(db_rows_from(c, &IDEMPOTENCY_FIND, stored_fields, in, &r));
        if (rows_count(r))
            return replay(c, r, in->request_hash);
    }
    return ERR_IDEMPOTENCY_IN_PROGRESS; /* it ended between the two, and began again */
}

enum err idempotency_run(struct call *c)
{
    return call_models(c) ? once_claimed(c) : db_tx(c, once, NULL);
}

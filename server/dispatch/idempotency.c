/* Idempotency keys: a retry gets the reply of the first request, which is done once. */
#include "server/dispatch/idempotency.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"
#include "db/db.h"
#include "server/dispatch/query.h"
#include "server/id.h"

enum { CLAIM_GRACE_MS = 5000, CLAIM_TRIES = 2 };

/* A claim on the key, as the statements of db/idempotency.sql take it. */
struct claim {
    const char *key, *request_hash, *content_type, *location, *body, *claim;
    int64_t status, claim_ms;
    bool passing; /* the reply is not to be stored */
    bool settled; /* it is stored, by the handler's own transaction */
};

static const struct field stored_fields[] = {
    FIELD(COMPUTED, KIND_TEXT, struct claim, key),
    FIELD(COMPUTED, KIND_TEXT, struct claim, request_hash),
    FIELD(COMPUTED, KIND_TEXT, struct claim, content_type),
    FIELD(COMPUTED, KIND_TEXT, struct claim, location),
    FIELD(COMPUTED, KIND_TEXT, struct claim, body),
    FIELD(COMPUTED, KIND_INT, struct claim, status),
    FIELD(COMPUTED, KIND_UUID, struct claim, claim),
    FIELD(COMPUTED, KIND_INT, struct claim, claim_ms),
    END_FIELDS,
};

COLUMNS(lock_row, locked);
COLUMNS(kept, request_hash, status, content_type, location, body);
QUERY(key_lock, IDEMPOTENCY_LOCK, stored_fields, READS(lock_row));
QUERY(key_find, IDEMPOTENCY_FIND, stored_fields, READS(kept));
QUERY(key_store, IDEMPOTENCY_STORE, stored_fields);
QUERY(key_claim, IDEMPOTENCY_CLAIM, stored_fields);
QUERY(key_settle, IDEMPOTENCY_SETTLE, stored_fields);
QUERY(key_release, IDEMPOTENCY_RELEASE, stored_fields);

static const char *request_hash(struct call *c)
{
    struct buf all = { .arena = &c->arena };
    buf_fmt(&all, "%s %s", method_name(c->exchange->method), c->uri.path);
    for (size_t i = 0; i < c->uri.query.count; i++)
        buf_fmt(&all, "&%s=%s", c->uri.query.items[i].name, c->uri.query.items[i].value);
    buf_char(&all, '\n');
    buf_add(&all, c->exchange->body.data, c->exchange->body.len);
    char *hex = arena_alloc(&c->arena, SHA256_HEX_SIZE);
    sha256_hex(all.data, all.len, hex);
    return hex;
}

static enum err replay(struct call *c, const struct rows *r, const char *hash)
{
    if (strcmp(row_text(r, 0, &kept.request_hash), hash) != 0)
        return ERR_IDEMPOTENCY_CONFLICT;
    if (strcmp(row_text(r, 0, &kept.status), "0") == 0)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    reply_json(c, atoi(row_text(r, 0, &kept.status)));
    c->reply.content_type = arena_text(&c->arena, row_text(r, 0, &kept.content_type));
    const char *location = row_text(r, 0, &kept.location);
    c->reply.location = location ? arena_text(&c->arena, location) : NULL;
    buf_add(&c->reply.body, row_text(r, 0, &kept.body), row_bytes(r, 0, &kept.body));
    c->reply.replayed = true;
    return OK;
}

/* A refusal is a reply too, and is stored. A failure of the service is not, nor one that another
 * configuration would not have had, nor one that only another request caused. */
static bool is_refusal(const struct call *c, enum err err)
{
    return err_status(err) < 500 && err != ERR_MODEL_NOT_CONFIGURED && err != ERR_REFLECTION_RUNNING &&
           !db_failed_by_others(&c->task);
}

void idempotency_failed_beside(struct call *c, enum err err)
{
    struct claim *claim = c->claim;
    if (claim && !is_refusal(c, err))
        claim->passing = true;
}

static void refuse(struct call *c, enum err err)
{
    struct buf *out = reply_json(c, err_status(err));
    c->reply.content_type = "application/problem+json";
    c->reply.location = NULL;
    problem_json(out, err, &c->problem, c->request_id);
    c->reply.error = err;
}

static void take_answer(struct claim *in, struct call *c)
{
    in->status = c->reply.status;
    in->content_type = c->reply.content_type;
    in->location = c->reply.location;
    in->body = buf_string(&c->reply.body);
}

static enum err once(struct call *c, void *arg)
{
    (void)arg;
    struct claim in = { .key = c->exchange->headers.idempotency_key, .request_hash = request_hash(c) };
    struct rows *r;
    TRY(query_rows(c, &key_lock, &in, NULL, &r));
    if (row_text(r, 0, &lock_row.locked)[0] != 't')
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    TRY(query_rows(c, &key_find, &in, NULL, &r));
    if (rows_count(r))
        return replay(c, r, in.request_hash);
    TRY(db_savepoint(&c->task));
    enum err err = route_run(c);
    if (err != OK) {
        if (!is_refusal(c, err))
            return err;
        TRY(db_undo_to_savepoint(&c->task));
        refuse(c, err);
    }
    take_answer(&in, c);
    return query_run(c, &key_store, &in);
}

/* ---- requests that hold no transaction while they wait ---- */

enum err idempotency_settle(struct call *c)
{
    struct rows *r;
    struct claim *claim = c->claim;
    if (!claim || claim->passing || !c->reply.status)
        return OK;
    take_answer(claim, c);
    TRY(query_rows(c, &key_settle, claim, NULL, &r));
    if (rows_count(r) == 0)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    claim->settled = true;
    return OK;
}

/* The handler's error, or that of storing its reply, where no transaction of the handler's has stored it. */
static enum err end_claim(struct call *c, enum err err)
{
    const struct claim *claim = c->claim;
    if (err != OK && is_refusal(c, err) && !claim->settled) {
        refuse(c, err);
        err = OK;
    }
    if (err == OK && !claim->settled)
        err = idempotency_settle(c);
    if (claim->passing || (err != OK && err != ERR_OUTCOME_UNKNOWN)) /* what is settled has no claim left */
        (void)!query_run(c, &key_release, claim);
    return err;
}

static enum err once_claimed(struct call *c)
{
    struct claim *in = arena_alloc(&c->arena, sizeof *in);
    *in = (struct claim){ .key = c->exchange->headers.idempotency_key,
                          .request_hash = request_hash(c),
                          .claim = id_new(&c->arena),
                          .claim_ms = call_limit_ms(c) + CLAIM_GRACE_MS };
    struct rows *r;
    for (int i = 0; i < CLAIM_TRIES; i++) {
        TRY(query_rows(c, &key_claim, in, NULL, &r));
        if (rows_count(r)) {
            c->claim = in;
            return end_claim(c, route_run(c));
        }
        TRY(query_rows(c, &key_find, in, NULL, &r));
        if (rows_count(r))
            return replay(c, r, in->request_hash);
    }
    return ERR_IDEMPOTENCY_IN_PROGRESS; /* it ended between the two, and began again */
}

enum err idempotency_run(struct call *c)
{
    return call_models(c) ? once_claimed(c) : query_tx(c, once, NULL);
}

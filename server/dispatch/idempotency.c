/* Idempotency keys: a request runs once, and a retry gets the stored reply. */
#include "server/dispatch/idempotency.h"

#include <string.h>

#include "core/base/sha256.h"
#include "db/db.h"
#include "server/dispatch/query.h"
#include "server/id.h"

enum { CLAIM_TRIES = 2 };

/* A claim on the key: the parameters of the statements in db/idempotency.sql. */
struct claim {
    const char *key, *request_hash, *content_type, *location, *body, *claim;
    int64_t status, claim_ms;
    bool transient; /* do not store the reply: a retry may succeed */
    bool settled;   /* the handler's own transaction has stored the reply */
};

static const struct field claim_fields[] = {
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
COLUMNS(stored_reply, request_hash, status, content_type, location, body);
QUERY(key_lock, IDEMPOTENCY_LOCK, claim_fields, READS(lock_row));
QUERY(key_find, IDEMPOTENCY_FIND, claim_fields, READS(stored_reply));
QUERY(key_store, IDEMPOTENCY_STORE, claim_fields);
QUERY(key_claim, IDEMPOTENCY_CLAIM, claim_fields);
QUERY(key_settle, IDEMPOTENCY_SETTLE, claim_fields);
QUERY(key_release, IDEMPOTENCY_RELEASE, claim_fields);

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
    if (strcmp(rows_text(r, 0, &stored_reply.request_hash), hash) != 0)
        return ERR_IDEMPOTENCY_CONFLICT;
    const int status = (int)row_int(r, 0, &stored_reply.status, 0);
    if (!status)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    TRY(query_durable(c));
    call_reply_json(c, status);
    c->reply.content_type = arena_text(&c->arena, rows_text(r, 0, &stored_reply.content_type));
    const char *location = rows_text(r, 0, &stored_reply.location);
    c->reply.location = location ? arena_text(&c->arena, location) : NULL;
    buf_add(&c->reply.body, rows_text(r, 0, &stored_reply.body), rows_bytes(r, 0, &stored_reply.body));
    c->reply.replayed = true;
    return OK;
}

/* A client error is stored like any other reply. Errors that a retry may not get are not: server errors,
 * errors that depend on the configuration, and conflicts with another request. */
static bool is_storable(const struct call *c, enum err err)
{
    return problem_status(err) < 500 && err != ERR_MODEL_NOT_CONFIGURED && err != ERR_REFLECTION_RUNNING &&
           !db_is_retryable(&c->task);
}

void idempotency_partial_failure(struct call *c, enum err err)
{
    struct claim *claim = c->claim;
    if (claim && !is_storable(c, err))
        claim->transient = true;
}

static void reply_with_problem(struct call *c, enum err err)
{
    struct buf *out = call_reply_json(c, problem_status(err));
    c->reply.content_type = "application/problem+json";
    c->reply.location = NULL;
    problem_json(out, err, &c->problem, c->request_id);
    c->reply.error = err;
}

static void copy_reply(struct claim *in, struct call *c)
{
    in->status = c->reply.status;
    in->content_type = c->reply.content_type;
    in->location = c->reply.location;
    in->body = buf_string(&c->reply.body);
}

static enum err run_in_tx(struct call *c, void *arg)
{
    (void)arg;
    struct claim in = { .key = c->exchange->headers.idempotency_key, .request_hash = request_hash(c) };
    struct rows *r;
    TRY(query_rows(c, &key_lock, &in, NULL, &r));
    if (!row_bool(r, 0, &lock_row.locked))
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    TRY(query_rows(c, &key_find, &in, NULL, &r));
    if (rows_count(r))
        return replay(c, r, in.request_hash);
    TRY(db_savepoint(&c->task));
    enum err err = query_run_route(c);
    if (err != OK) {
        if (!is_storable(c, err))
            return err;
        TRY(db_rollback_to_savepoint(&c->task));
        reply_with_problem(c, err);
    }
    copy_reply(&in, c);
    return query_run(c, &key_store, &in);
}

/* ---- routes that ask a model: a claim instead of a transaction ---- */

enum err idempotency_settle(struct call *c)
{
    struct rows *r;
    struct claim *claim = c->claim;
    if (!claim || claim->transient || !c->reply.status)
        return OK;
    copy_reply(claim, c);
    TRY(query_rows(c, &key_settle, claim, NULL, &r));
    if (rows_count(r) == 0)
        return ERR_IDEMPOTENCY_IN_PROGRESS;
    claim->settled = true;
    return OK;
}

/* Stores the reply unless the handler's transaction already did. Returns the handler's error, or the error of
 * storing. */
static enum err finish_claim(struct call *c, enum err err)
{
    const struct claim *claim = c->claim;
    if (err != OK && is_storable(c, err) && !claim->settled) {
        reply_with_problem(c, err);
        err = OK;
    }
    if (err == OK && !claim->settled)
        err = idempotency_settle(c);
    if (claim->transient ||
        (err != OK && err != ERR_OUTCOME_UNKNOWN)) /* a no-op if settled: no claim is left */
        query_clean_up(c, &key_release, claim, err);
    return err;
}

static enum err run_with_claim(struct call *c)
{
    struct claim *in = arena_alloc(&c->arena, sizeof *in);
    *in = (struct claim){ .key = c->exchange->headers.idempotency_key,
                          .request_hash = request_hash(c),
                          .claim = id_new(&c->arena),
                          .claim_ms = call_limit_ms(c) + CALL_CLAIM_GRACE_MS };
    struct rows *r;
    for (int i = 0; i < CLAIM_TRIES; i++) {
        TRY(query_rows(c, &key_claim, in, NULL, &r));
        if (rows_count(r)) {
            c->claim = in;
            return finish_claim(c, query_run_route(c));
        }
        TRY(query_rows(c, &key_find, in, NULL, &r));
        if (rows_count(r))
            return replay(c, r, in->request_hash);
    }
    return ERR_IDEMPOTENCY_IN_PROGRESS; /* another request released the key and a third claimed it, twice in a
                                           row */
}

enum err idempotency_run(struct call *c)
{
    return call_models(c) ? run_with_claim(c) : query_tx(c, run_in_tx, NULL);
}

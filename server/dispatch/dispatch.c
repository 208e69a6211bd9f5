/* The path of every request: match, authenticate, read, decode, run, reply. */
#include "server/dispatch/dispatch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/hash.h"
#include "core/base/time_text.h"
#include "db/db.h"
#include "server/backfill.h"
#include "server/dispatch/call.h"
#include "server/config.h"
#include "server/coro.h"
#include "server/dispatch/auth.h"
#include "server/dispatch/idempotency.h"
#include "server/dispatch/origin.h"
#include "server/dispatch/query.h"
#include "server/dispatch/route.h"
#include "server/id.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/sealer.h"

static struct call *call_of(const struct exchange *x)
{
    return x->call;
}

static void open_call(struct exchange *x)
{
    struct call *c = call_of(x);
    c->exchange = x;
    c->loop = x->loop;
    c->problem.arena = &c->arena;
    c->reply.body.arena = &c->arena;
    c->task = (struct task){ .loop = c->loop, .arena = &c->arena, .problem = &c->problem };
    x->task = &c->task;
    x->reply = &c->reply;
}

/* ---- after the headers ---- */

static bool is_visible_ascii(const char *text, size_t least, size_t most)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return len >= least && len <= most;
}

bool call_models(const struct call *c)
{
    if (!c->route || c->route->models || !c->route->models_with)
        return c->route && c->route->models;
    for (size_t i = 0; i < c->uri.query.count; i++)
        if (strcmp(c->uri.query.items[i].name, c->route->models_with) == 0)
            return true;
    return false;
}

int64_t call_limit_ms(const struct call *c)
{
    const struct config *config = c->loop->config;
    return config->request_timeout_ms + (call_models(c) ? config->model_timeout_ms : 0);
}

static bool is_media_type(const char *content_type, const char *type)
{
    size_t len = strlen(type);
    if (!content_type || strncasecmp(content_type, type, len) != 0)
        return false;
    char after = content_type[len];
    return after == '\0' || after == ';' || after == ' ';
}

/* Rejects a body by its headers, before it is read. */
static enum err body_check(struct call *c)
{
    const struct exchange *x = c->exchange;
    const char *type = c->route->lines ? "application/x-ndjson" : "application/json";
    const char *length = x->headers.content_length;
    if (length && strtoull(length, NULL, 10) > x->limits.body_bytes)
        return problem_set(&c->problem, ERR_BODY_TOO_LARGE, "the limit is %zu bytes", x->limits.body_bytes);
    if (x->method != GET && x->method != HEAD && !is_media_type(x->headers.content_type, type))
        return problem_set(&c->problem, ERR_UNSUPPORTED_MEDIA_TYPE, "the body must be %s", type);
    if (x->headers.content_encoding && strcasecmp(x->headers.content_encoding, "identity") != 0)
        return problem_set(&c->problem, ERR_UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed");
    return OK;
}

static enum err options(struct call *c, const char *allow)
{
    c->reply.status = 204;
    c->reply.allow = allow ? allow : "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    return OK;
}

static void set_limits(struct call *c)
{
    const struct config *config = c->loop->config;
    c->exchange->limits.body_bytes =
        (size_t)(c->route->lines ? config->max_bulk_bytes : config->max_body_bytes);
    c->exchange->limits.work_ms = call_limit_ms(c);
    c->exchange->limits.own_ms = config->request_timeout_ms;
    c->exchange->limits.bulk = c->route->lines;
    c->exchange->limits.sheds = c->route->role != ROLE_PUBLIC;
}

static enum err match(struct call *c)
{
    const struct exchange *x = c->exchange;
    TRY(uri_parse(x->target, &c->arena, &c->uri, &c->problem));
    if (x->method == OPTIONS && strcmp(x->target, "*") == 0)
        return options(c, NULL);
    struct route_match found = route_find(x->method, &c->uri, &c->arena);
    if (x->method == OPTIONS && found.allow)
        return options(c, found.allow);
    if (!found.route && found.allow) {
        c->reply.allow = found.allow;
        return problem_set(&c->problem, ERR_METHOD_NOT_ALLOWED, "%s takes %s", c->uri.path, found.allow);
    }
    if (!found.route)
        return problem_set(&c->problem, ERR_NOT_FOUND, "there is no path %s", c->uri.path);
    c->route = found.route;
    c->path = found.path;
    return OK;
}

static void set_time_and_id(struct call *c)
{
    char now[TIME_TEXT_SIZE];
    time_text_full(loop_wall_us(), now);
    c->now = arena_text(&c->arena, now);
    const char *given = c->exchange->headers.request_id;
    c->request_id = given && is_visible_ascii(given, 1, 128) ? given : id_new(&c->arena);
    c->reply.request_id = c->task.id = c->request_id;
}

static enum err begin(struct exchange *x)
{
    struct call *c = call_of(x);
    const struct http_headers *headers = &x->headers;
    set_time_and_id(c);
    TRY(match(c));
    if (!c->route) /* OPTIONS */
        return OK;
    set_limits(c);
    TRY(origin_check_writer(c));
    TRY(auth_early(c));
    x->limits.unknown = !c->owner;
    if (x->method == POST && headers->idempotency_key && !is_visible_ascii(headers->idempotency_key, 1, 255))
        return ERR_INVALID_IDEMPOTENCY_KEY;
    return exchange_has_body(x) ? body_check(c) : OK;
}

/* ---- after the body ---- */

/* A cursor is valid only for the same owner, path and filters. The page size may change. */
static uint64_t cursor_scope(const struct call *c)
{
    uint64_t h = hash_bytes(c->owner, strlen(c->owner) + 1, HASH_SEED);
    h = hash_bytes(c->uri.path, strlen(c->uri.path) + 1, h);
    for (size_t i = 0; i < c->uri.query.count; i++) {
        const struct pair *p = &c->uri.query.items[i];
        if (strcmp(p->name, "cursor") == 0 || strcmp(p->name, "limit") == 0)
            continue;
        h = hash_bytes(p->name, strlen(p->name) + 1, h);
        h = hash_bytes(p->value, strlen(p->value) + 1, h);
    }
    return h;
}

static enum err decode(struct call *c)
{
    static const struct field none[] = { END_FIELDS };
    const struct route *r = c->route;
    const struct buf *body = &c->exchange->body;
    c->in = arena_zero(&c->arena, r->in_size ? r->in_size : 1);
    c->cursor_scope = cursor_scope(c);
    struct field_input in = {
        .path = &c->path,
        .query = &c->uri.query,
        .body = body->len ? body->data : NULL,
        .body_len = body->len,
        .depth_limit = (int)c->loop->config->max_json_depth,
        .now = c->now,
        .cursor_scope = c->cursor_scope,
    };
    return field_decode(r->fields ? r->fields : none, &in, &c->arena, c->in, &c->problem);
}

static bool is_safe(const struct call *c)
{
    return c->route->safe && !(c->route->stores && c->route->stores(c));
}

/* The reply is stored for retries with the same Idempotency-Key. Call it after decode. */
static bool uses_idempotency_key(const struct call *c)
{
    const struct exchange *x = c->exchange;
    return x->method == POST && x->headers.idempotency_key && !c->route->lines && !is_safe(c);
}

static void run_coroutine(void *arg)
{
    struct call *c = arg;
    enum err err = uses_idempotency_key(c) ? idempotency_run(c) : query_run_route(c);
    if (db_task_end(&c->task)) {
        log_event(LOG_ERROR, "tx_left_open", "route=%s request_id=%s", c->route->path, c->request_id);
        err = ERR_INTERNAL;
    }
    arena_run_hooks(&c->arena); /* free the rows before the reply is sent, which may take long */
    call_answer(c, err);
    exchange_release(c->exchange);
}

static void work(struct call *c)
{
    enum err err = decode(c);
    if (err != OK) {
        call_answer(c, err);
        return;
    }
    if (uses_idempotency_key(c) || c->route->waits || c->route->lines || call_models(c)) {
        exchange_hold(c->exchange);
        coro_start(run_coroutine, c);
        return;
    }
    err = query_run_route(c);
    if (err != OK || !c->task.wait) /* otherwise the query's callback replies */
        call_answer(c, err);
}

static void authenticated(struct call *c, enum err err)
{
    if (err == OK)
        work(c);
    else
        call_answer(c, err);
}

static void run(struct exchange *x)
{
    auth_check(call_of(x), authenticated);
}

static void identified(struct call *c, enum err err)
{
    exchange_identified(c->exchange, err);
}

static void identify(struct exchange *x)
{
    auth_check(call_of(x), identified);
}

/* ---- the reply ---- */

static bool etag_matches(const char *header, const char *etag)
{
    if (!header)
        return false;
    if (strcmp(header, "*") == 0)
        return true;
    return strstr(header, etag) !=
           NULL; /* our tags are quoted and have one length, so a substring match is exact */
}

static const char *quoted_hex(struct arena *arena, uint64_t value)
{
    char *text = arena_copy(arena, "\"0123456789abcdef\"", 18);
    for (int i = 16; i > 0; i--, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    return text;
}

/* Public replies have a tag only if their handler sets one: those of static files. */
static void tag(struct call *c)
{
    struct reply *r = &c->reply;
    const struct exchange *x = c->exchange;
    if ((x->method != GET && x->method != HEAD) || r->status != 200 || r->no_store)
        return;
    if (!r->etag && c->route->role != ROLE_PUBLIC)
        r->etag = quoted_hex(&c->arena, hash_bytes(r->body.data, r->body.len, HASH_SEED));
    if (r->etag && etag_matches(x->headers.if_none_match, r->etag)) {
        r->status = 304;
        r->body.len = 0;
    }
}

static void fail(struct call *c, enum err err)
{
    struct reply *r = &c->reply;
    r->error = err;
    r->status = problem_status(err);
    r->content_type = "application/problem+json";
    r->body.len = 0;
    r->location = NULL;
    if (err == ERR_OUTCOME_UNKNOWN && !c->problem.detail)
        c->problem.detail = uses_idempotency_key(c)
                                ? "the database was lost during the commit; retry with the "
                                  "same Idempotency-Key to learn the outcome"
                                : "the database was lost during the commit; read "
                                  "before you retry, or use an Idempotency-Key";
    problem_json(&r->body, err, &c->problem, c->request_id);
}

void call_answer(struct call *c, enum err err)
{
    /* What it stored is committed by now. */
    if (c->left_pending)
        backfill_found();
    if (c->left_unsealed)
        sealer_found();
    if (c->exchange->stream
            .started) { /* the status is already sent; only the end of the stream can report the error */
        c->reply.error = err;
        exchange_stream_end(c->exchange, err);
        return;
    }
    if (err != OK)
        fail(c, err);
    else
        tag(c);
    exchange_answered(c->exchange);
}

static void refuse(struct exchange *x, enum err err)
{
    call_answer(call_of(x), err);
}

/* ---- log and clean-up ---- */

/* The trace id of a W3C traceparent, 00-<32 hex>-<16 hex>-<2 hex>. */
static const char *trace_id(const char *traceparent, struct arena *arena)
{
    if (!traceparent || strlen(traceparent) < 55 || traceparent[2] != '-' || traceparent[35] != '-')
        return NULL;
    for (int i = 3; i < 35; i++)
        if (!isxdigit((unsigned char)traceparent[i]))
            return NULL;
    return arena_copy(arena, traceparent + 3, 32);
}

static void account(struct exchange *x, bool sent)
{
    struct call *c = call_of(x);
    const enum err error = c->reply.error;
    const int64_t us = loop_clock_us() - x->start_us;
    sent |= x->stream.started && error != OK; /* a stream that failed here: the client did not disconnect */
    const int status =
        sent ? c->reply.status : 499; /* 499: the client disconnected before the reply was complete */
    metrics_request(c->loop->metrics, route_index(c->route), status, us);
    struct log_request line = {
        .method = method_name(x->method),
        .route = c->route ? c->route->path : c->uri.path,
        .owner = c->owner && c->owner[0] ? c->owner : NULL,
        .request_id = c->request_id,
        .trace_id = trace_id(x->headers.traceparent, &c->arena),
        .status = status,
        .us = us,
        .bytes_in = x->received_bytes,
        .bytes_out = x->sent_bytes,
        .code = error != OK && (sent || x->state == EXCHANGE_CUT) ? problem_code(error) : NULL,
    };
    log_request(&line);
}

static void close_call(struct exchange *x)
{
    struct call *c = call_of(x);
    task_forget(&c->task);
    (void)db_task_end(&c->task);
    arena_release(&c->arena);
}

_Static_assert(_Alignof(struct call) <= _Alignof(struct exchange),
               "the call is allocated after its exchange");

const struct http_app dispatch_app = {
    .call_bytes = sizeof(struct call),
    .open = open_call,
    .begin = begin,
    .identify = identify,
    .run = run,
    .refuse = refuse,
    .account = account,
    .close = close_call,
};

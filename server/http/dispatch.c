/* The way of every request, in one order: match, authenticate, read, parse, call, answer. */
#include "server/http/dispatch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/hash.h"
#include "core/base/time_text.h"
#include "db/db.h"
#include "server/config.h"
#include "server/coro.h"
#include "server/dispatch/query.h"
#include "server/http/auth.h"
#include "server/http/idempotency.h"
#include "server/http/route.h"
#include "server/id.h"
#include "server/log.h"

/* ---- with the headers ---- */

static bool visible(const char *text, size_t least, size_t most)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return len >= least && len <= most;
}

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

bool call_has_body(const struct call *c)
{
    return c->headers.transfer_encoding ||
           (c->headers.content_length && strtoull(c->headers.content_length, NULL, 10) > 0);
}

size_t call_body_limit(const struct call *c)
{
    const struct config *config = c->loop->config;
    return (size_t)(c->route && c->route->lines ? config->max_bulk_bytes : config->max_body_bytes);
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

static bool is_type(const char *content_type, const char *type)
{
    size_t len = strlen(type);
    if (!content_type || strncasecmp(content_type, type, len) != 0)
        return false;
    char after = content_type[len];
    return after == '\0' || after == ';' || after == ' ';
}

/* What the headers say of the body. */
static enum err body_check(struct call *c)
{
    const char *type = c->route->lines ? "application/x-ndjson" : "application/json";
    const char *length = c->headers.content_length;
    if (length && strtoull(length, NULL, 10) > call_body_limit(c))
        return problem_set(&c->problem, ERR_BODY_TOO_LARGE, "the limit is %zu bytes", call_body_limit(c));
    if (c->method != GET && c->method != HEAD && !is_type(c->headers.content_type, type))
        return problem_set(&c->problem, ERR_UNSUPPORTED_MEDIA_TYPE, "the body must be %s", type);
    return OK;
}

static enum err options(struct call *c, const char *allow)
{
    c->reply.status = 204;
    c->reply.allow = allow ? allow : "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    return OK;
}

enum err call_begin(struct call *c, const char *target, const char *method)
{
    char now[TIME_TEXT_SIZE];
    time_text_full(loop_wall_us(), now);
    c->now = arena_text(&c->arena, now);
    c->problem.arena = &c->arena;
    c->reply.body.arena = &c->arena;
    c->body.arena = &c->arena;
    c->method = method_parse(method);
    const char *given = c->headers.request_id;
    c->request_id = given && visible(given, 1, 128) ? given : id_new(&c->arena);
    c->trace_id = trace_id(c->headers.traceparent, &c->arena);

    /* Two readings of where the body ends: what a proxy in front would forward as another request. */
    if (c->headers.ambiguous || (c->headers.content_length && c->headers.transfer_encoding)) {
        c->reply.close = true;
        return problem_set(&c->problem, ERR_BAD_REQUEST, "the length of the body is given twice");
    }
    TRY(uri_parse(target, &c->arena, &c->uri, &c->problem));
    if (c->method == OPTIONS && strcmp(target, "*") == 0)
        return options(c, NULL);
    struct route_match match = route_find(c->method, &c->uri, &c->arena);
    if (c->method == OPTIONS && match.allow)
        return options(c, match.allow);
    if (!match.route && match.allow) {
        c->reply.allow = match.allow;
        return problem_set(&c->problem, ERR_METHOD_NOT_ALLOWED, "%s takes %s", c->uri.path, match.allow);
    }
    if (!match.route)
        return problem_set(&c->problem, ERR_NOT_FOUND, "there is no path %s", c->uri.path);
    c->route = match.route;
    c->path = match.path;
    TRY(auth_early(c));
    if (c->method == POST && c->headers.idempotency_key && !visible(c->headers.idempotency_key, 1, 255))
        return ERR_INVALID_IDEMPOTENCY_KEY;
    return call_has_body(c) ? body_check(c) : OK;
}

/* ---- with the body ---- */

/* A cursor is good for the same owner, path and filters only; the page size may change. */
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
    c->in = arena_zero(&c->arena, r->in_size ? r->in_size : 1);
    c->cursor_scope = cursor_scope(c);
    struct field_input in = {
        .path = &c->path,
        .query = &c->uri.query,
        .body = c->body.len ? c->body.data : NULL,
        .body_len = c->body.len,
        .depth_limit = (int)c->loop->config->max_json_depth,
        .now = c->now,
        .cursor_scope = c->cursor_scope,
    };
    return field_decode(r->fields ? r->fields : none, &in, &c->arena, c->in, &c->problem);
}

/* Its answer is kept for those that come again with the same key. */
static bool is_once(const struct call *c)
{
    return c->method == POST && !c->route->safe && !c->route->lines && c->headers.idempotency_key;
}

static void run_coroutine(void *arg)
{
    struct call *c = arg;
    enum err err = is_once(c) ? idempotency_run(c) : route_run(c);
    if (db_call_end(c)) {
        log_event(LOG_ERROR, "tx_left_open", "route=%s request_id=%s", c->route->path, c->request_id);
        err = ERR_INTERNAL;
    }
    call_answer(c, err);
    if (err == OK && c->afterwards && exchange_is_quiet(c))
        c->afterwards(c);
    exchange_finished(c);
}

static void work(struct call *c)
{
    enum err err = decode(c);
    if (err != OK) {
        call_answer(c, err);
        return;
    }
    if (is_once(c) || c->route->waits || c->route->lines || call_models(c)) {
        c->waits = true;
        coro_start(run_coroutine, c);
        return;
    }
    err = route_run(c);
    if (err != OK || !c->op) /* else the database answers later */
        call_answer(c, err);
}

static void authenticated(struct call *c, enum err err)
{
    if (err == OK)
        work(c);
    else
        call_answer(c, err);
}

void call_run(struct call *c)
{
    auth_check(c, authenticated);
}

/* ---- the answer ---- */

static bool etag_matches(const char *header, const char *etag)
{
    if (!header)
        return false;
    if (strcmp(header, "*") == 0)
        return true;
    return strstr(header, etag) != NULL; /* ours are quoted and of one length: a substring is the whole tag */
}

static const char *quoted_hex(struct arena *arena, uint64_t value)
{
    char *text = arena_copy(arena, "\"0123456789abcdef\"", 18);
    for (int i = 16; i > 0; i--, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    return text;
}

static void tag(struct call *c)
{
    struct reply *r = &c->reply;
    if ((c->method != GET && c->method != HEAD) || r->status != 200 || c->stream ||
        c->route->role == ROLE_PUBLIC)
        return;
    r->etag = quoted_hex(&c->arena, hash_bytes(r->body.data, r->body.len, HASH_SEED));
    if (etag_matches(c->headers.if_none_match, r->etag)) {
        r->status = 304;
        r->body.len = 0;
    }
}

static void fail(struct call *c, enum err err)
{
    struct reply *r = &c->reply;
    c->error = err;
    r->status = err_status(err);
    r->content_type = "application/problem+json";
    r->body.len = 0;
    r->location = NULL;
    if (err == ERR_OUTCOME_UNKNOWN && !c->problem.detail)
        c->problem.detail = is_once(c) ? "the database was lost during the commit; the same "
                                         "request with the same Idempotency-Key tells"
                                       : "the database was lost during the commit; read "
                                         "before you write again, or use an Idempotency-Key";
    problem_json(&r->body, err, &c->problem, c->request_id);
}

void call_answer(struct call *c, enum err err)
{
    if (c->stream) { /* its status is sent already: only its end can tell */
        c->error = err;
        stream_end(c, err);
        return;
    }
    if (err != OK)
        fail(c, err);
    else
        tag(c);
    exchange_answered(c);
}

struct buf *reply_json(struct call *c, int status)
{
    c->reply.status = status;
    c->reply.content_type = "application/json";
    c->reply.body.len = 0;
    return &c->reply.body;
}

enum err reply_text(struct call *c, int status, const char *content_type, const char *text)
{
    struct buf *out = reply_json(c, status);
    c->reply.content_type = content_type;
    buf_text(out, text);
    return OK;
}

/* Of one entry of the header: 1 where it says none. */
static double weight_of(const char *entry)
{
    for (const char *p = entry + strcspn(entry, ",;"); *p == ';'; p += strcspn(p, ",;")) {
        p += 1 + strspn(p + 1, " \t");
        if (strncasecmp(p, "q=", 2) == 0)
            return strtod(p + 2, NULL);
    }
    return 1;
}

/* The q of a media type in an Accept header: the most specific entry decides; -1 without one. */
static double accept_q(const char *accept, const char *type)
{
    double q = -1;
    int best = 0;
    size_t type_len = strlen(type), main_len = strcspn(type, "/");
    for (const char *p = accept; *p;) {
        p += strspn(p, " ,\t");
        size_t len = strcspn(p, ",;");
        size_t name = len;
        while (name && p[name - 1] == ' ')
            name--;
        int specific =
            name == type_len && strncasecmp(p, type, name) == 0                                         ? 3
            : name == main_len + 2 && strncasecmp(p, type, main_len + 1) == 0 && p[main_len + 1] == '*' ? 2
            : name == 3 && strncmp(p, "*/*", 3) == 0                                                    ? 1
                                                                                                        : 0;
        if (specific > best) {
            best = specific;
            q = weight_of(p);
        }
        p += strcspn(p, ",");
    }
    return q;
}

bool call_prefers(struct call *c, const char *type)
{
    c->reply.by_accept = true;
    if (!c->headers.accept)
        return false;
    const double q = accept_q(c->headers.accept, type);
    return q > 0 && q > accept_q(c->headers.accept, "application/json");
}

/* Runs queries for handlers: parameters by name, rows as replies. */
#include "server/dispatch/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/coro.h"
#include "server/dispatch/idempotency.h"
#include "server/dispatch/query_plan.h"
#include "server/id.h"
#include "server/log.h"

static void require(const struct query *q, bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "daybookd: %s:%d: query %s %s\n", q->file, q->line, q->name, what);
    abort();
}

static const char *param_value(const struct task *t, const char *now, const struct param *p, const void *in,
                               struct arena *arena)
{
    switch (p->source) {
    case PARAM_OWNER:
        return t->owner;
    case PARAM_NEW_ID:
        return id_new(arena);
    case PARAM_NOW:
        return now;
    case PARAM_REQUEST_ID:
        return t->id;
    case PARAM_FIELD:
        break;
    }
    return field_ref_value(&p->field, in, arena);
}

static const char *const *param_values(const struct task *t, const char *now, const struct query *q,
                                       const void *in, struct arena *arena)
{
    require(q, q->plan->params, "is run, but was never checked");
    const int count = q->statement->param_count;
    const char **values = arena_alloc(arena, (size_t)(count + 1) * sizeof *values);
    for (int i = 0; i < count; i++)
        values[i] = param_value(t, now, &q->plan->params[i], in, arena);
    return values;
}

/* ---- in a coroutine ---- */

static enum err rows_of(struct task *t, const char *now, const struct query *q, const void *in,
                        struct arena *arena, struct rows **rows)
{
    TRY(db_values(t, q->statement, param_values(t, now, q, in, arena), arena, rows));
    rows_bind(*rows, &q->plan->map);
    return OK;
}

enum err query_rows(struct call *c, const struct query *q, const void *in, struct arena *arena,
                    struct rows **rows)
{
    if (!coro_self()) {
        log_event(LOG_ERROR, "wait_outside_coroutine", "query=%s route=%s: mark the route `waits`", q->name,
                  c->route->path);
        return ERR_INTERNAL;
    }
    return rows_of(&c->task, c->now, q, in, arena ? arena : &c->arena, rows);
}

enum err query_task_rows(struct task *t, const struct query *q, const void *in, struct arena *arena,
                         struct rows **rows)
{
    return rows_of(t, NULL, q, in, arena, rows);
}

enum err query_one(struct call *c, const struct query *q, const void *in, struct arena *arena,
                   struct rows **rows)
{
    TRY(query_rows(c, q, in, arena, rows));
    return rows_count(*rows) ? OK : query_missing(c, q, in);
}

enum err query_run(struct call *c, const struct query *q, const void *in)
{
    struct rows *r;
    struct arena step = { 0 };
    enum err err = query_rows(c, q, in, &step, &r);
    arena_release(&step);
    return err;
}

void query_clean_up(struct call *c, const struct query *q, const void *in, enum err ended)
{
    if (c->task.over || ended == ERR_REQUEST_TIMEOUT)
        db_post(&c->task, q->statement, param_values(&c->task, c->now, q, in, &c->arena));
    else
        (void)!query_run(c, q, in);
}

QUERY(replay_durable, REPLAY_DURABLE, NULL);

enum err query_durable(struct call *c)
{
    return query_run(c, &replay_durable, NULL);
}

/* ---- replies ---- */

enum err query_missing(struct call *c, const struct query *q, const void *in)
{
    struct buf out = { .arena = &c->arena };
    if (!q->missing || c->problem.detail)
        return ERR_NOT_FOUND;
    for (const char *p = q->missing; *p;) {
        size_t len = strcspn(p, "{");
        buf_add(&out, p, len);
        p += len;
        if (!*p)
            break;
        len = strcspn(p, "}");
        const char *name = arena_copy(&c->arena, p + 1, len - 1);
        const char *value = field_param(q->fields, in, name, &c->arena);
        buf_text(&out, value ? value : "(none)");
        p += len + 1;
    }
    return problem_set(&c->problem, ERR_NOT_FOUND, "there is no %s", buf_string(&out));
}

static const void *member(const struct field *f, const void *in)
{
    return (const char *)in + f->offset;
}

/* A list with `missing`, such as the history of one trade, is empty only if that trade does not exist, or if
 * a cursor points at the end. */
static bool is_missing(const struct query *q, const void *in, const struct rows *r)
{
    const enum shape shape = q->statement->shape;
    if (rows_count(r) || shape == SHAPE_NONE || (shape == SHAPE_LIST && !q->missing))
        return false;
    const struct cursor_values *cursor = q->plan->cursor ? member(q->plan->cursor, in) : NULL;
    return !cursor || cursor->count == 0;
}

enum err query_page(struct call *c, struct buf *out, const struct query *q, const void *in,
                    const struct rows *r, query_item *put)
{
    if (!q->plan->limit) {
        log_event(LOG_ERROR, "page_without_cursor", "query=%s: its statement takes no cursor", q->name);
        return ERR_INTERNAL;
    }
    const int most = (int)*(const int64_t *)member(q->plan->limit, in);
    const int count = rows_count(r) > most ? most : rows_count(r);
    buf_text(out, "{\"items\":[");
    for (int row = 0; row < count; row++) {
        if (coro_self())
            call_yield(c); /* rendering an item may take long */
        if (row)
            buf_char(out, ',');
        (put ? put : rows_json)(out, r, row);
    }
    buf_text(out, "],\"next_cursor\":");
    if (rows_count(r) > most) {
        struct cursor_values values;
        rows_cursor(r, count - 1, &c->arena, &values);
        buf_char(out, '"');
        cursor_encode(out, &values, c->cursor_scope);
        buf_char(out, '"');
    } else {
        buf_text(out, "null");
    }
    buf_char(out, '}');
    return OK;
}

/* Renders the rows by the statement's shape. */
static enum err reply(struct call *c, int status, const struct query *q, const void *in, const struct rows *r)
{
    const enum shape shape = q->statement->shape;
    if (is_missing(q, in, r))
        return query_missing(c, q, in);
    if (shape == SHAPE_NONE || status == 204) {
        c->reply.status = 204;
        return OK;
    }
    struct buf *out = call_reply_json(c, status);
    if (shape == SHAPE_LIST)
        return query_page(c, out, q, in, r, NULL);
    rows_json(out, r, 0);
    return OK;
}

enum err query_reply(struct call *c, int status, const struct query *q, const void *in)
{
    struct rows *r;
    TRY(query_rows(c, q, in, NULL, &r));
    return reply(c, status, q, in, r);
}

/* ---- routes with a query ---- */

static const struct query *query_of(const struct call *c)
{
    const struct route *route = c->route;
    return route->query_if && route->query_if(c) ? route->other_query : route->query;
}

static enum err route_reply(struct call *c, const struct rows *r)
{
    const struct route *route = c->route;
    const struct query *q = query_of(c);
    if (!route->render)
        return reply(c, route->status ? route->status : 200, q, c->in, r);
    return is_missing(q, c->in, r) ? query_missing(c, q, c->in) : route->render(c, r);
}

/* The query of a route that does not wait. */
struct sent {
    struct db_request request;
    struct call *call;
};

static void route_done(struct db_request *r, enum err err)
{
    struct call *c = container_of(r, struct sent, request)->call;
    if (err == OK) {
        rows_bind(r->rows, &query_of(c)->plan->map);
        err = route_reply(c, r->rows);
    }
    call_answer(c, err);
}

static enum err send_route(struct call *c, const struct query *q)
{
    struct sent *sent = arena_alloc(&c->arena, sizeof *sent);
    *sent = (struct sent){ .request.done = route_done, .call = c };
    return db_send(&c->task, &sent->request, q->statement,
                   param_values(&c->task, c->now, q, c->in, &c->arena));
}

enum err query_route(struct call *c)
{
    if (c->route->prepare)
        TRY(c->route->prepare(c));
    const struct query *q = query_of(c);
    if (!coro_self())
        return send_route(c, q);
    struct rows *r;
    TRY(query_rows(c, q, c->in, NULL, &r));
    return route_reply(c, r);
}

enum err query_run_route(struct call *c)
{
    return c->route->handle ? c->route->handle(c) : query_route(c);
}

/* ---- transactions ---- */

struct tx {
    struct call *call;
    enum err (*fn)(struct call *c, void *arg);
    void *arg;
};

static enum err run_tx(void *arg)
{
    const struct tx *tx = arg;
    return tx->fn(tx->call, tx->arg);
}

/* In one transaction, so that the reply is stored exactly if the work is committed. */
static enum err run_and_settle(void *arg)
{
    const struct tx *tx = arg;
    TRY(tx->fn(tx->call, tx->arg));
    return idempotency_settle(tx->call);
}

enum err query_tx(struct call *c, enum err (*fn)(struct call *c, void *arg), void *arg)
{
    struct tx tx = { c, fn, arg };
    return db_tx(&c->task, db_in_tx(&c->task) ? run_tx : run_and_settle, &tx);
}

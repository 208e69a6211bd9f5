/* Checks all queries before the port opens, and makes their plans. */
#include <string.h>

#include "server/dispatch/query.h"
#include "server/dispatch/query_plan.h"
#include "server/dispatch/route.h"
#include "server/log.h"

/* The section that QUERY fills. Weak, because a program without queries has no such section. */
extern const struct query *const __start_daybook_queries[] __attribute__((weak));
extern const struct query *const __stop_daybook_queries[] __attribute__((weak));

static struct arena plans; /* never released */

int query_count(void)
{
    return (int)(__stop_daybook_queries - __start_daybook_queries);
}

/* "handlers/lesson.c:12", without the "../" of a path relative to the build folder. */
static const char *where(const struct query *q, struct arena *arena)
{
    const char *file = q->file;
    while (strncmp(file, "../", 3) == 0)
        file += 3;
    return arena_fmt(arena, "%s:%d", file, q->line);
}

/* ---- parameters ---- */

static bool find_param(const struct query *q, const char *name, struct param *p)
{
    static const char *const of_call[PARAM_FIELD] = {
        [PARAM_OWNER] = "owner",
        [PARAM_NEW_ID] = "new_id",
        [PARAM_NOW] = "now",
        [PARAM_REQUEST_ID] = "request_id",
    };
    for (p->source = 0; p->source < PARAM_FIELD; p->source++)
        if (strcmp(name, of_call[p->source]) == 0)
            return true;
    return field_ref_find(q->fields, name, &p->field);
}

static const char *check_params(const struct query *q, struct arena *arena)
{
    const struct statement *st = q->statement;
    struct param *params = arena_zero(&plans, (size_t)(st->param_count + 1) * sizeof *params);
    for (int i = 0; i < st->param_count; i++)
        if (!find_param(q, st->params[i], &params[i]))
            return arena_fmt(arena, "%s: %s takes :%s, which is not in its field table", where(q, arena),
                             st->name, st->params[i]);
    q->plan->params = params;
    return NULL;
}

/* ---- columns ---- */

static short find_column(const struct described *d, const char *name, size_t len)
{
    for (short i = 0; i < d->count; i++)
        if (strlen(d->names[i]) == len && strncmp(d->names[i], name, len) == 0)
            return i;
    return -1;
}

static const char *check_columns(const struct query *q, const struct described *d, struct arena *arena)
{
    struct column_map *map = &q->plan->map;
    map->columns = q->columns;
    map->cursor[0] = find_column(d, "_cursor_1", strlen("_cursor_1"));
    map->cursor[1] = find_column(d, "_cursor_2", strlen("_cursor_2"));
    if (!q->columns)
        return NULL;
    short *at = arena_alloc(&plans, (q->columns->count + 1) * sizeof *at);
    const char *p = q->columns->names;
    for (size_t i = 0; i < q->columns->count; i++) {
        p += strspn(p, ", \n");
        size_t len = strcspn(p, ", \n");
        at[i] = find_column(d, p, len);
        if (at[i] < 0)
            return arena_fmt(arena, "%s: %s has no column %.*s", where(q, arena), q->statement->name,
                             (int)len, p);
        p += len;
    }
    map->at = at;
    return NULL;
}

static const char *const cursor_params[CURSOR_VALUES] = { "cursor_1", "cursor_2" };

static bool takes(const struct query *q, const char *param)
{
    for (int i = 0; i < q->statement->param_count; i++)
        if (strcmp(q->statement->params[i], param) == 0)
            return true;
    return false;
}

/* A paged list needs a limit and the columns of its cursor: one, or two if its sort key has two parts. */
static const char *check_page(const struct query *q, struct arena *arena)
{
    if (q->statement->shape != SHAPE_LIST || !takes(q, cursor_params[0]))
        return NULL;
    const struct field *limit = field_find(q->fields, "limit");
    if (!limit || limit->kind != KIND_INT)
        return arena_fmt(arena, "%s: the field table of %s has a cursor but no limit", where(q, arena),
                         q->statement->name);
    for (int i = 0; i < CURSOR_VALUES; i++)
        if (takes(q, cursor_params[i]) != (q->plan->map.cursor[i] >= 0))
            return arena_fmt(arena, "%s: %s needs both :cursor_%d and the column _cursor_%d, or neither",
                             where(q, arena), q->statement->name, i + 1, i + 1);
    q->plan->limit = limit;
    q->plan->cursor = field_find(q->fields, "cursor"); /* check_params has found its parts */
    return NULL;
}

/* The names in "lesson {id}" must be fields. */
static const char *check_missing(const struct query *q, struct arena *arena)
{
    struct field_ref ref;
    for (const char *p = q->missing ? strchr(q->missing, '{') : NULL; p; p = strchr(p + 1, '{')) {
        const char *name = arena_copy(arena, p + 1, strcspn(p + 1, "}"));
        if (!field_ref_find(q->fields, name, &ref))
            return arena_fmt(arena, "%s: \"%s\" of %s names %s, which is not in its field table",
                             where(q, arena), q->missing, q->statement->name, name);
    }
    return NULL;
}

const char *query_check(const struct query *q, const struct described *described, struct arena *arena)
{
    const char *wrong = check_params(q, arena);
    if (!wrong)
        wrong = check_columns(q, &described[q->statement->index], arena);
    if (!wrong)
        wrong = check_page(q, arena);
    if (!wrong)
        wrong = check_missing(q, arena);
    return wrong;
}

/* ---- routes and statements ---- */

static const char *check_route_query(const struct route *r, const struct query *q, struct arena *arena)
{
    const char *method = method_name(r->method);
    const bool waits = r->waits || r->lines || r->models;
    if (q->fields != r->fields)
        return arena_fmt(arena, "%s %s: query %s (%s) has a different field table than the route", method,
                         r->path, q->name, where(q, arena));
    if (!waits && q->statement->lane == LANE_SLOW)
        return arena_fmt(arena, "%s %s: query %s (%s) is slow, so the route must be marked waits", method,
                         r->path, q->name, where(q, arena));
    if (r->method != POST && q->statement->shape == SHAPE_ONE && !q->missing)
        return arena_fmt(arena, "%s %s: query %s (%s) must say what is missing when there is no row", method,
                         r->path, q->name, where(q, arena));
    if (!r->render && q->statement->shape == SHAPE_LIST && !takes(q, cursor_params[0]))
        return arena_fmt(arena,
                         "%s %s: query %s (%s) is a list without a cursor, so the route must render it",
                         method, r->path, q->name, where(q, arena));
    return NULL;
}

const char *query_check_route(const struct route *r, struct arena *arena)
{
    const char *method = method_name(r->method), *why = NULL;
    const bool waits = r->waits || r->lines || r->models;
    if (!r->handle == !r->query)
        return arena_fmt(arena, "%s %s must have a handler or a query, and not both", method, r->path);
    if (!r->query_if != !r->other_query || (r->other_query && !r->query))
        return arena_fmt(arena, "%s %s must have query, query_if and other_query, or none of the last two",
                         method, r->path);
    if (r->query)
        why = check_route_query(r, r->query, arena);
    if (!why && r->other_query)
        why = check_route_query(r, r->other_query, arena);
    if (!why && r->other_query && r->other_query->columns != r->query->columns)
        why = arena_fmt(arena, "%s %s: the columns of its two queries differ", method, r->path);
    if (!why && r->exports && r->exports->fields != r->fields)
        why = arena_fmt(arena, "%s %s: query %s (%s) has a different field table than the route", method,
                        r->path, r->exports->name, where(r->exports, arena));
    if (!why && r->exports && !r->exports->plan->limit)
        why = arena_fmt(arena, "%s %s: query %s (%s) has no pages, so it cannot be exported", method, r->path,
                        r->exports->name, where(r->exports, arena));
    if (!why && r->handle && !waits && r->role != ROLE_PUBLIC)
        why = arena_fmt(arena, "%s %s has a handler of its own, so it must be marked waits", method, r->path);
    return why;
}

const char *query_check_statement(const struct statement *st, struct arena *arena)
{
    for (int i = 0; i < query_count(); i++)
        if (__start_daybook_queries[i]->statement == st)
            return NULL;
    if (st == &KEY_REFRESH ||
        st == &KEY_FIND) /* db/keys.c runs them without a query: there is no owner yet */
        return NULL;
    return arena_fmt(arena, "no query uses the statement %s", st->name);
}

bool query_check_all(const struct described *described)
{
    struct arena arena = { 0 };
    int wrong = 0;
    for (int i = 0; i < query_count(); i++) {
        const char *why = query_check(__start_daybook_queries[i], described, &arena);
        wrong += why && !log_failure("%s", why);
    }
    route_init();
    for (int i = 0; i < route_count(); i++) {
        const char *why = query_check_route(route_at(i), &arena);
        wrong += why && !log_failure("%s", why);
    }
    for (int i = 0; i < statements_count; i++) {
        const char *why = query_check_statement(statements[i], &arena);
        wrong += why && !log_failure("%s", why);
    }
    arena_release(&arena);
    return wrong == 0;
}

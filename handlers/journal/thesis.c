/* Theses: opened, changed, and closed with their outcome. */
#include <string.h>

#include "core/journal/journal_names.h"
#include "core/ledger/trade.h"
#include "handlers/journal/journal.h"
#include "handlers/kit/export.h"
#include "handlers/kit/reply.h"
#include "handlers/lesson.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all routes of theses. */
struct thesis_in {
    const char *id, *at, *as_of, *since, *until;
    const char *status, *symbol, *side, *text, *invalidation, *target, *horizon, *parallel, *reason;
    const char *deployment_id, *agent_name, *model_call_id, *format;
    struct texts evidence, tags, tags_all, validates;
    struct texts cleared; /* members of a PATCH that are null */
    struct lesson_outcome *outcome;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define T(from, kind, member, ...) FIELD(from, kind, struct thesis_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct thesis_in)
#define AS_OF  FIELD_AS_OF(struct thesis_in)
#define PAGE   FIELD_PAGE(struct thesis_in)
#define AUTHOR JOURNAL_AT(struct thesis_in), JOURNAL_AUTHOR(struct thesis_in)
#define TEXT(...) T(FROM_BODY, KIND_TEXT, text, .min = 1, .max = 20000, __VA_ARGS__)
#define PARTS \
    T(FROM_BODY, KIND_CHOICE, side, .choices = trade_side_names), \
    T(FROM_BODY, KIND_TEXT, invalidation, .min = 1, .max = 2000), \
    T(FROM_BODY, KIND_TEXT, target, .min = 1, .max = 2000), \
    T(FROM_BODY, KIND_LINE, horizon, .min = 1, .max = 200), \
    JOURNAL_NOTES(struct thesis_in)

static const struct field open_fields[] = {
    JOURNAL_SYMBOL(FROM_BODY, struct thesis_in, .required = true),
    TEXT(.required = true), PARTS,
    T(FROM_BODY, KIND_UUID, deployment_id),
    T(FROM_BODY, KIND_BOOL, parallel, .fallback = "false"),
    AUTHOR,
    END_FIELDS,
};
static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field history_fields[] = { ID, AS_OF, PAGE, END_FIELDS };
#define FILTER \
    JOURNAL_FILTER(struct thesis_in), \
    JOURNAL_FILTER_NOTES(struct thesis_in), \
    T(FROM_QUERY, KIND_CHOICE, status, .choices = CHOICES("open", "closed"))
static const struct field list_fields[] = { FILTER, PAGE, END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct thesis_in), END_FIELDS };
static const struct field change_fields[] = {
    ID, TEXT(), PARTS, AUTHOR,
    T(BODY_NULLS, KIND_TEXTS, cleared),
    END_FIELDS,
};

/* The outcome of a thesis is one case, unless the caller counts otherwise. */
#define O(kind, member, ...) FIELD(FROM_BODY, kind, struct lesson_outcome, member, __VA_ARGS__)
static const struct field outcome_fields[] = {
    O(KIND_LINE, metric, .required = true, .min = 1, .max = 100),
    O(KIND_NUMBER, value, .required = true),
    O(KIND_NUMBER, baseline),
    O(KIND_INT, sample_size, .min = 1, .max = 1000000000, .fallback = "1"),
    O(KIND_TEXT, note, .min = 1, .max = 500),
    END_FIELDS,
};
static const struct field close_fields[] = {
    ID,
    T(FROM_BODY, KIND_TEXT, reason, .required = true, .min = 1, .max = 2000),
    T(FROM_BODY, KIND_OBJECT, outcome, SUB(outcome_fields, struct lesson_outcome)),
    T(FROM_BODY, KIND_UUIDS, validates, .min = 0, .max = 32),
    AUTHOR,
    END_FIELDS,
};
/* clang-format on */

COLUMNS(opened, id, _deployment_known, _open_id);
COLUMNS(current, status, at, too_early);
COLUMNS(changed, _words);

QUERY(thesis_open, THESIS_OPEN, open_fields, READS(opened));
QUERY(thesis_get, THESIS_GET, get_fields, .missing = "thesis {id}");
QUERY(thesis_list, THESIS_LIST, list_fields);
QUERY(thesis_export, THESIS_EXPORT, export_fields);
QUERY(thesis_history, THESIS_HISTORY, history_fields, .missing = "thesis {id}");
QUERY(thesis_lock, THESIS_LOCK, close_fields, .missing = "thesis {id}");
QUERY(thesis_current, THESIS_CURRENT, close_fields, READS(current), .missing = "thesis {id}");
QUERY(thesis_change, THESIS_CHANGE, change_fields, READS(changed));
QUERY(thesis_close, THESIS_CLOSE, close_fields, .missing = "thesis {id}");

/* ---- opening ---- */

/* Opens the thesis. A request that loses to a concurrent one finds its thesis open in the next try. */
static enum err open_thesis(struct call *c)
{
    enum { TRIES_MAX = 8 };
    const struct thesis_in *in = c->in;
    for (int i = 0; i < TRIES_MAX; i++) {
        struct rows *r;
        TRY(query_one(c, &thesis_open, in, NULL, &r));
        if (rows_text(r, 0, &opened.id)) {
            journal_stored(c, true);
            return reply_created(c, r, "/v1/theses", &opened.id);
        }
        if (!row_bool(r, 0, &opened._deployment_known))
            return journal_no_deployment(c, in->deployment_id);
        const char *open_id = rows_text(r, 0, &opened._open_id);
        if (open_id)
            return problem_set(&c->problem, ERR_THESIS_OPEN,
                               "thesis %s on %s is open; change or close it, or open another with parallel",
                               open_id, in->symbol);
    }
    return problem_set(&c->problem, ERR_OVERLOADED, "other requests keep opening and closing theses on %s",
                       in->symbol);
}

/* ---- changes ---- */

/* Locks the thesis, and checks that it may change at that time. *at: the time of the change. */
static enum err lock_open(struct call *c, const char *id, const char **at)
{
    const struct thesis_in in = { .id = id, .at = *at };
    struct rows *r;
    TRY(query_one(c, &thesis_lock, &in, NULL, &r));
    TRY(query_one(c, &thesis_current, &in, NULL, &r));
    if (strcmp(rows_text(r, 0, &current.status), "open") != 0)
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "thesis %s is closed", id);
    *at = rows_time(r, 0, &current.at, &c->arena);
    if (row_bool(r, 0, &current.too_early))
        return problem_set(&c->problem, ERR_TIME_ORDER, "thesis %s was changed after %s", id, *at);
    return OK;
}

/* A change to what the thesis says already is a repeat: no new version, no event. */
static enum err reply_unchanged(struct call *c, const char *id)
{
    const struct thesis_in in = { .id = id, .as_of = LATEST };
    TRY(query_durable(c));
    return query_reply(c, 200, &thesis_get, &in);
}

static enum err change_tx(struct call *c, void *arg)
{
    struct thesis_in in = *(const struct thesis_in *)arg;
    struct rows *r;
    TRY(lock_open(c, in.id, &in.at));
    TRY(query_rows(c, &thesis_change, &in, NULL, &r));
    if (rows_count(r) == 0)
        return reply_unchanged(c, in.id);
    journal_stored(c, row_bool(r, 0, &changed._words));
    return reply_row(c, 200, r);
}

static enum err change_thesis(struct call *c)
{
    const struct thesis_in *in = c->in;
    for (size_t i = 0; i < in->cleared.count; i++)
        if (strcmp(in->cleared.items[i], "text") == 0)
            return problem_field(&c->problem, "text", FAULT_REQUIRED, "cannot be cleared");
    return query_tx(c, change_tx, c->in);
}

static enum err close_tx(struct call *c, void *arg)
{
    struct thesis_in in = *(const struct thesis_in *)arg;
    struct rows *r;
    TRY(lock_open(c, in.id, &in.at));
    const struct lesson_validation validation = {
        .at = in.at,
        .reason = arena_fmt(&c->arena, "Thesis %s was closed with this outcome", in.id),
        .ids = in.validates,
        .outcome = in.outcome,
        .field = "validates",
        .agent_name = in.agent_name,
        .model_call_id = in.model_call_id,
    };
    if (in.validates.count)
        TRY(lesson_validate_all(c, &validation));
    TRY(query_one(c, &thesis_close, &in, NULL, &r));
    journal_stored(c, false);
    return reply_row(c, 200, r);
}

static enum err close_thesis(struct call *c)
{
    const struct thesis_in *in = c->in;
    if (in->validates.count && !in->outcome)
        return problem_field(&c->problem, "outcome", FAULT_REQUIRED, "is required to validate lessons");
    return query_tx(c, close_tx, c->in);
}

#define IN(table) INPUT(table, struct thesis_in)

const struct route thesis_routes[] = {
    { POST, "/v1/theses", open_thesis, IN(open_fields), .role = ROLE_AGENT, .waits = true },
    { GET, "/v1/theses", .query = &thesis_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/theses/export", export_route, .exports = &thesis_export, IN(export_fields),
      .role = ROLE_READER, .waits = true },
    { GET, "/v1/theses/{id}", .query = &thesis_get, IN(get_fields), .role = ROLE_READER },
    { GET, "/v1/theses/{id}/history", .query = &thesis_history, IN(history_fields), .role = ROLE_READER },
    { PATCH, "/v1/theses/{id}", change_thesis, IN(change_fields), .role = ROLE_AGENT, .waits = true },
    { POST, "/v1/theses/{id}/close", close_thesis, IN(close_fields), .role = ROLE_AGENT, .waits = true },
    END_ROUTES,
};

/* Memories: notes, proposals, risk notes and decisions. */
#include <string.h>

#include "core/journal/journal_names.h"
#include "handlers/journal/journal.h"
#include "handlers/kit/export.h"
#include "handlers/kit/policy.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all routes of memories. */
struct memory_in {
    const char *id, *at, *as_of, *since, *until;
    const char *kind, *status, *text, *symbol, *action, *reason, *observation_type, *default_types;
    const char *deployment_id, *thesis_id, *agent_name, *model_call_id, *format;
    struct texts evidence, tags, tags_all;
    struct cursor_values cursor;
    int64_t limit, ttl_days;
};

#define DECISION "decision"

/* clang-format off */
#define M(from, kind, member, ...) FIELD(from, kind, struct memory_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct memory_in)
#define AS_OF  FIELD_AS_OF(struct memory_in)
#define PAGE   FIELD_PAGE(struct memory_in)
#define AUTHOR JOURNAL_AUTHOR(struct memory_in)

static const struct field create_fields[] = {
    M(FROM_BODY, KIND_CHOICE, kind, .required = true, .choices = journal_names_kinds),
    M(FROM_BODY, KIND_TEXT, text, .required = true, .min = 1, .max = 20000),
    JOURNAL_SYMBOL(FROM_BODY, struct memory_in),
    M(FROM_BODY, KIND_CHOICE, action, .choices = journal_names_actions),
    JOURNAL_NOTES(struct memory_in),
    M(FROM_BODY, KIND_UUID, deployment_id),
    M(FROM_BODY, KIND_UUID, thesis_id),
    M(FROM_BODY, KIND_NAME, observation_type),
    M(FROM_BODY, KIND_INT, ttl_days, .min = 1, .max = 3650),
    JOURNAL_AT(struct memory_in),
    AUTHOR,
    M(COMPUTED, KIND_TEXT, default_types),
    END_FIELDS,
};
static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field history_fields[] = { ID, AS_OF, PAGE, END_FIELDS };
#define FILTER \
    JOURNAL_FILTER(struct memory_in), \
    JOURNAL_FILTER_NOTES(struct memory_in), \
    M(FROM_QUERY, KIND_CHOICE, kind, .choices = journal_names_kinds), \
    M(FROM_QUERY, KIND_CHOICE, status, .choices = CHOICES("active", "retracted", "any"), .fallback = "active"), \
    M(FROM_QUERY, KIND_UUID, thesis_id)
static const struct field list_fields[] = { FILTER, PAGE, END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct memory_in), END_FIELDS };
static const struct field retract_fields[] = {
    ID,
    M(FROM_BODY, KIND_TEXT, reason, .required = true, .min = 1, .max = 2000),
    JOURNAL_AT(struct memory_in),
    AUTHOR,
    END_FIELDS,
};
/* clang-format on */

COLUMNS(created, id, _deployment_known, _thesis_known, _thesis_symbol, _thesis_deployment, _listed, _allowed);
COLUMNS(current, kind, status, at, too_early);

QUERY(memory_create, MEMORY_CREATE, create_fields, READS(created));
QUERY(memory_get, MEMORY_GET, get_fields, .missing = "memory {id}");
QUERY(memory_list, MEMORY_LIST, list_fields);
QUERY(memory_export, MEMORY_EXPORT, export_fields);
QUERY(memory_history, MEMORY_HISTORY, history_fields, .missing = "memory {id}");
QUERY(memory_lock, MEMORY_LOCK, retract_fields, .missing = "memory {id}");
QUERY(memory_current, MEMORY_CURRENT, retract_fields, READS(current), .missing = "memory {id}");
QUERY(memory_retract, MEMORY_RETRACT, retract_fields, .missing = "memory {id}");

/* Researchers write notes that cannot be mistaken for what was decided. */
static enum err check_role(struct call *c, const char *kind)
{
    if (strcmp(kind, DECISION) != 0 || c->role >= ROLE_AGENT)
        return OK;
    return problem_set(&c->problem, ERR_FORBIDDEN, "a decision needs the role %s; the key has the role %s",
                       role_name(ROLE_AGENT), role_name(c->role));
}

static enum err prepare_create(struct call *c)
{
    struct memory_in *in = c->in;
    const bool decision = strcmp(in->kind, DECISION) == 0;
    TRY(check_role(c, in->kind));
    if (decision && !in->action)
        return problem_field(&c->problem, "action", FAULT_REQUIRED, "is required for a decision");
    if (!decision && in->action)
        return problem_field(&c->problem, "action", FAULT_NOT_TOGETHER, "a %s has no action", in->kind);
    in->default_types = policy_default_types(&c->arena);
    return OK;
}

static enum err render_created(struct call *c, const struct rows *r)
{
    const struct memory_in *in = c->in;
    const struct journal_reference thesis = {
        .field = "thesis_id",
        .what = "thesis",
        .id = in->thesis_id,
        .known = row_bool(r, 0, &created._thesis_known),
        .symbol = rows_text(r, 0, &created._thesis_symbol),
        .deployment_id = rows_text(r, 0, &created._thesis_deployment),
    };
    if (!row_bool(r, 0, &created._allowed))
        return policy_denied(c, in->observation_type, row_bool(r, 0, &created._listed));
    if (!row_bool(r, 0, &created._deployment_known))
        return journal_no_deployment(c, in->deployment_id);
    TRY(journal_check_reference(c, &thesis));
    journal_stored(c, true);
    return reply_created(c, r, "/v1/memories", &created.id);
}

static enum err retract_tx(struct call *c, void *arg)
{
    struct memory_in in = *(const struct memory_in *)arg;
    struct rows *r;
    TRY(query_one(c, &memory_lock, &in, NULL, &r));
    TRY(query_one(c, &memory_current, &in, NULL, &r));
    TRY(check_role(c, rows_text(r, 0, &current.kind)));
    if (strcmp(rows_text(r, 0, &current.status), "active") != 0)
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "memory %s is retracted already", in.id);
    in.at = rows_time(r, 0, &current.at, &c->arena);
    if (row_bool(r, 0, &current.too_early))
        return problem_set(&c->problem, ERR_TIME_ORDER, "memory %s is dated after %s", in.id, in.at);
    TRY(query_one(c, &memory_retract, &in, NULL, &r));
    journal_stored(c, false);
    return reply_row(c, 200, r);
}

static enum err retract(struct call *c)
{
    return query_tx(c, retract_tx, c->in);
}

#define IN(table) INPUT(table, struct memory_in)

const struct route memory_routes[] = {
    { POST, "/v1/memories", .prepare = prepare_create, .query = &memory_create, .render = render_created,
      IN(create_fields), .role = ROLE_RESEARCHER },
    { GET, "/v1/memories", .query = &memory_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/memories/export", export_route, .exports = &memory_export, IN(export_fields),
      .role = ROLE_READER, .waits = true },
    { GET, "/v1/memories/{id}", .query = &memory_get, IN(get_fields), .role = ROLE_READER },
    { GET, "/v1/memories/{id}/history", .query = &memory_history, IN(history_fields), .role = ROLE_READER },
    { POST, "/v1/memories/{id}/retract", retract, IN(retract_fields), .role = ROLE_RESEARCHER,
      .waits = true },
    END_ROUTES,
};

/* Deployments: running versions of skills, in live, paper or sim mode. */
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all deployment routes. */
struct deployment_in {
    const char *id, *skill_id, *version, *mode, *name, *at, *as_of;
    struct reflection_in *reflection;
    struct cursor_values cursor;
    int64_t limit;
};

static const char *const modes[] = { "live", "paper", "sim", NULL };

/* clang-format off */
#define D(from, kind, member, ...) FIELD(from, kind, struct deployment_in, member, __VA_ARGS__)
#define ID    FIELD_ID(struct deployment_in)
#define AS_OF FIELD_AS_OF(struct deployment_in)

static const struct field reflection_fields[] = {
    REFLECTION_FIELDS,
    FIELD(FROM_BODY, KIND_LINE, struct reflection_in, model, .min = 1, .max = 100),
    END_FIELDS,
};
static const struct field create_fields[] = {
    D(FROM_BODY, KIND_NAME, skill_id, .required = true),
    D(FROM_BODY, KIND_NAME, version, .required = true),
    D(FROM_BODY, KIND_CHOICE, mode, .required = true, .choices = modes),
    D(FROM_BODY, KIND_LINE, name, .min = 1, .max = 200),
    D(FROM_BODY, KIND_OBJECT, reflection, SUB(reflection_fields, struct reflection_in)),
    FIELD_AT(struct deployment_in),
    END_FIELDS,
};
static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field delete_fields[] = { ID, END_FIELDS };
static const struct field list_fields[] = {
    AS_OF,
    D(FROM_QUERY, KIND_NAME, skill_id),
    D(FROM_QUERY, KIND_NAME, version),
    D(FROM_QUERY, KIND_CHOICE, mode, .choices = modes),
    FIELD_PAGE(struct deployment_in),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(new, id, _skill_known);
COLUMNS(some, gone);
QUERY(deployment_create, DEPLOYMENT_CREATE, create_fields, READS(new));
QUERY(deployment_get, DEPLOYMENT_GET, get_fields, .missing = "deployment {id}");
QUERY(deployment_list, DEPLOYMENT_LIST, list_fields);
QUERY(deployment_hide, DEPLOYMENT_HIDE, delete_fields);
QUERY(deployment_lock_some, DEPLOYMENT_LOCK_SOME, delete_fields);
QUERY(deployment_delete_some, DEPLOYMENT_DELETE_SOME, delete_fields, READS(some));
QUERY(deployment_delete, DEPLOYMENT_DELETE, delete_fields, .missing = "deployment {id}");
QUERY(deployment_delete_journal, DEPLOYMENT_DELETE_JOURNAL, delete_fields);

static enum err render_new_deployment(struct call *c, const struct rows *r)
{
    const struct deployment_in *in = c->in;
    if (rows_text(r, 0, &new.id))
        return reply_created(c, r, "/v1/deployments", &new.id);
    if (row_bool(r, 0, &new._skill_known))
        return problem_field(&c->problem, "version", FAULT_UNKNOWN_REFERENCE, "%s has no version %s",
                             in->skill_id, in->version);
    return problem_field(&c->problem, "skill_id", FAULT_UNKNOWN_REFERENCE, "there is no skill %s",
                         in->skill_id);
}

static enum err delete_some(struct call *c, void *gone)
{
    struct arena step = { 0 };
    struct rows *r;
    enum err err = query_run(c, &deployment_lock_some, c->in);
    if (err == OK)
        err = query_rows(c, &deployment_delete_some, c->in, &step, &r);
    *(bool *)gone = err == OK && row_int(r, 0, &some.gone, 0) != 0;
    arena_release(&step);
    return err;
}

static enum err delete_rest(struct call *c, void *in)
{
    TRY(query_run(c, &deployment_lock_some, in));
    TRY(query_reply(c, 204, &deployment_delete, in));
    return query_run(c, &deployment_delete_journal, in);
}

/* Hides the deployment at once, then deletes its rows in steps. If the request times out, the deleted rows
 * stay deleted and a retry continues. */
static enum err delete_deployment(struct call *c)
{
    bool gone = true;
    TRY(query_run(c, &deployment_hide, c->in));
    while (gone)
        TRY(query_tx(c, delete_some, &gone));
    return query_tx(c, delete_rest, c->in);
}

#define IN(table) INPUT(table, struct deployment_in)

const struct route deployment_routes[] = {
    { POST, "/v1/deployments", .query = &deployment_create, .render = render_new_deployment,
      IN(create_fields), .role = ROLE_AGENT },
    { GET, "/v1/deployments", .query = &deployment_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/deployments/{id}", .query = &deployment_get, IN(get_fields), .role = ROLE_READER },
    { DELETE, "/v1/deployments/{id}", delete_deployment, IN(delete_fields), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};

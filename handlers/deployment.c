/* Deployments: versions of skills that run, live, on paper or in a simulation. */
#include <string.h>

#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

/* Whatever a request about deployments may carry. */
struct deployment_in {
    const char *id, *skill_id, *version, *mode, *name, *at, *as_of;
    struct reflection_in *reflection;
    struct cursor_values cursor;
    int64_t limit;
};

static const char *const modes[] = { "live", "paper", "sim", NULL };

/* clang-format off */
#define D(from, kind, member, ...) FIELD(from, kind, struct deployment_in, member, __VA_ARGS__)
#define ID    D(FROM_PATH, KIND_UUID, id, .required = true)
#define AS_OF D(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)

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
    D(FROM_BODY, KIND_TIME, at, .fallback = "now"),
    END_FIELDS,
};
static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field delete_fields[] = { ID, END_FIELDS };
static const struct field list_fields[] = {
    AS_OF,
    D(FROM_QUERY, KIND_NAME, skill_id),
    D(FROM_QUERY, KIND_NAME, version),
    D(FROM_QUERY, KIND_CHOICE, mode, .choices = modes),
    D(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    D(FROM_QUERY, KIND_CURSOR, cursor),
    END_FIELDS,
};
/* clang-format on */

static enum err created(struct call *c, const struct rows *r)
{
    const struct deployment_in *in = c->in;
    const char *id = rows_text(r, 0, "id");
    if (!id && rows_text(r, 0, "_skill_known")[0] == 't')
        return problem_field(&c->problem, "version", FAULT_UNKNOWN_REFERENCE, "%s has no version %s",
                             in->skill_id, in->version);
    if (!id)
        return problem_field(&c->problem, "skill_id", FAULT_UNKNOWN_REFERENCE, "there is no skill %s",
                             in->skill_id);
    rows_json(reply_json(c, 201), r, 0);
    c->reply.location = arena_fmt(&c->arena, "/v1/deployments/%s", id);
    return OK;
}

static enum err deployment_create(struct call *c)
{
    return db_render(c, &DEPLOYMENT_CREATE, created);
}

static enum err deployment_get(struct call *c)
{
    return db_reply(c, 200, &DEPLOYMENT_GET);
}

static enum err deployment_list(struct call *c)
{
    return db_reply(c, 200, &DEPLOYMENT_LIST);
}

static enum err deleted(struct call *c, const struct rows *r)
{
    (void)r;
    c->reply.status = 204;
    return OK;
}

/* It is out of sight at once. When the request's time is up before all of it is gone, what is gone stays
 * gone, and the next try goes on. */
static enum err deployment_delete(struct call *c)
{
    TRY(db_run(c, &DEPLOYMENT_HIDE));
    for (bool more = true; more;) {
        struct rows *r;
        TRY(db_rows(c, &DEPLOYMENT_DELETE_SOME, &r));
        more = strcmp(rows_text(r, 0, "gone"), "0") != 0;
        rows_release(c, r);
    }
    return db_render(c, &DEPLOYMENT_DELETE, deleted);
}

#define IN(table) .fields = table, .in_size = sizeof(struct deployment_in)

const struct route deployment_routes[] = {
    { POST, "/v1/deployments", deployment_create, IN(create_fields), .role = ROLE_AGENT },
    { GET, "/v1/deployments", deployment_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/deployments/{id}", deployment_get, IN(get_fields), .role = ROLE_READER },
    { DELETE, "/v1/deployments/{id}", deployment_delete, IN(delete_fields), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};

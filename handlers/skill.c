/* Skills and their versions: the instructions of an agent, and how much of its track record it sees. */
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct memory_in {
    const char *enabled;
    int64_t recent_trades_k;
    struct reflection_in *reflection;
};

/* The input of all skill routes. */
struct skill_in {
    const char *skill_id, *version, *strategy, *at, *as_of;
    struct texts avoid;
    struct memory_in *memory;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct skill_in, member, __VA_ARGS__)
#define SKILL_ID S(FROM_PATH, KIND_NAME, skill_id, .required = true)
#define VERSION  S(FROM_PATH, KIND_NAME, version, .required = true)
#define AS_OF    FIELD_AS_OF(struct skill_in)
#define PAGE     FIELD_PAGE(struct skill_in)

/* The statement applies the defaults of these and of the memory fields, because the whole object may be absent. */
static const struct field reflection_fields[] = { REFLECTION_FIELDS, END_FIELDS };
static const struct field memory_fields[] = {
    FIELD(FROM_BODY, KIND_BOOL, struct memory_in, enabled),
    FIELD(FROM_BODY, KIND_INT, struct memory_in, recent_trades_k, .min = 0, .max = 30),
    FIELD(FROM_BODY, KIND_OBJECT, struct memory_in, reflection, SUB(reflection_fields, struct reflection_in)),
    END_FIELDS,
};
static const struct field put_fields[] = {
    SKILL_ID, VERSION,
    S(FROM_BODY, KIND_TEXT, strategy, .required = true, .min = 1, .max = 20000),
    S(FROM_BODY, KIND_TEXTS, avoid, .max = 50, .item_max = 500),
    S(FROM_BODY, KIND_OBJECT, memory, SUB(memory_fields, struct memory_in)),
    FIELD_AT(struct skill_in),
    END_FIELDS,
};
static const struct field get_fields[] = { SKILL_ID, VERSION, AS_OF, END_FIELDS };
static const struct field versions_fields[] = { SKILL_ID, AS_OF, PAGE, END_FIELDS };
static const struct field list_fields[] = { AS_OF, PAGE, END_FIELDS };
/* clang-format on */

#define VERSION_NAMED "version {version} of skill {skill_id}"
COLUMNS(locked, _same);
COLUMNS(user, id);
QUERY(version_create, SKILL_VERSION_CREATE, put_fields);
QUERY(version_lock, SKILL_VERSION_LOCK, put_fields, READS(locked), .missing = VERSION_NAMED);
QUERY(version_user, SKILL_VERSION_USER, put_fields, READS(user));
QUERY(version_replace, SKILL_VERSION_REPLACE, put_fields, .missing = VERSION_NAMED);
QUERY(version_get, SKILL_VERSION_GET, get_fields, .missing = VERSION_NAMED);
QUERY(version_list, SKILL_VERSION_LIST, versions_fields, .missing = "skill {skill_id}");
QUERY(skill_list, SKILL_LIST, list_fields);

/* A version that a deployment runs cannot change: past prompts must stay reproducible. */
static enum err put_tx(struct call *c, void *arg)
{
    const struct skill_in *in = arg;
    struct rows *r;
    TRY(query_rows(c, &version_create, in, NULL, &r));
    if (rows_count(r))
        return reply_row(c, 201, r);
    TRY(query_one(c, &version_lock, in, NULL, &r));
    if (row_bool(r, 0, &locked._same))
        return reply_row(c, 200, r);
    TRY(query_rows(c, &version_user, in, NULL, &r));
    if (rows_count(r))
        return problem_set(&c->problem, ERR_VERSION_IN_USE,
                           "the deployment %s runs version %s of %s: give the change a version of its own",
                           rows_text(r, 0, &user.id), in->version, in->skill_id);
    return query_reply(c, 200, &version_replace, in);
}

static enum err version_put(struct call *c)
{
    return query_tx(c, put_tx, c->in);
}

#define IN(table) INPUT(table, struct skill_in)

const struct route skill_routes[] = {
    { GET, "/v1/skills", .query = &skill_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/skills/{skill_id}/versions", .query = &version_list, IN(versions_fields),
      .role = ROLE_READER },
    { PUT, "/v1/skills/{skill_id}/versions/{version}", version_put, IN(put_fields), .role = ROLE_AGENT,
      .waits = true },
    { GET, "/v1/skills/{skill_id}/versions/{version}", .query = &version_get, IN(get_fields),
      .role = ROLE_READER },
    END_ROUTES,
};

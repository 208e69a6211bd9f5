/* Skills and their versions: what an agent is told to do, and how much of its track record it is shown. */
#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

struct memory_in {
    const char *enabled;
    int64_t recent_trades_k;
    struct reflection_in *reflection;
};

/* Whatever a request about skills may carry. */
struct skill_in {
    const char *skill_id, *version, *strategy, *at, *as_of;
    struct texts avoid;
    struct memory_in *memory;
    struct cursor_values cursor;
    int64_t limit;
};

const char *const reflection_cadences[] = { "off", "per_n_trades", "daily", NULL };

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct skill_in, member, __VA_ARGS__)
#define SKILL_ID S(FROM_PATH, KIND_NAME, skill_id, .required = true)
#define VERSION  S(FROM_PATH, KIND_NAME, version, .required = true)
#define AS_OF    S(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)
#define PAGE     S(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"), S(FROM_QUERY, KIND_CURSOR, cursor)

/* What is absent here and in the memory gets its default in the statement, because the object that it is in may be absent too. */
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
    S(FROM_BODY, KIND_TIME, at, .fallback = "now"),
    END_FIELDS,
};
static const struct field get_fields[] = { SKILL_ID, VERSION, AS_OF, END_FIELDS };
static const struct field versions_fields[] = { SKILL_ID, AS_OF, PAGE, END_FIELDS };
static const struct field list_fields[] = { AS_OF, PAGE, END_FIELDS };
/* clang-format on */

static enum err version_reply(struct call *c, int status, const struct rows *r)
{
    rows_json(reply_json(c, status), r, 0);
    return OK;
}

/* What an agent was shown must stay reproducible: what a deployment runs does not change under it. */
static enum err put_tx(struct call *c)
{
    const struct skill_in *in = c->in;
    struct rows *r;
    TRY(db_rows(c, &SKILL_VERSION_CREATE, &r));
    if (rows_count(r))
        return version_reply(c, 201, r);
    TRY(db_one(c, &SKILL_VERSION_LOCK, &r));
    if (rows_text(r, 0, "_same")[0] == 't')
        return version_reply(c, 200, r);
    TRY(db_rows(c, &SKILL_VERSION_USER, &r));
    if (rows_count(r))
        return problem_set(&c->problem, ERR_VERSION_IN_USE,
                           "the deployment %s runs version %s of %s: give the change a version of its own",
                           rows_text(r, 0, "id"), in->version, in->skill_id);
    return db_reply(c, 200, &SKILL_VERSION_REPLACE);
}

static enum err version_put(struct call *c)
{
    return db_tx(c, put_tx);
}

static enum err version_get(struct call *c)
{
    return db_reply(c, 200, &SKILL_VERSION_GET);
}

static enum err versions(struct call *c, const struct rows *r)
{
    const struct skill_in *in = c->in;
    if (rows_count(r) == 0 && in->cursor.count == 0)
        return ERR_NOT_FOUND;
    rows_page(reply_json(c, 200), c, r);
    return OK;
}

static enum err version_list(struct call *c)
{
    return db_render(c, &SKILL_VERSION_LIST, versions);
}

static enum err skill_list(struct call *c)
{
    return db_reply(c, 200, &SKILL_LIST);
}

#define IN(table) .fields = table, .in_size = sizeof(struct skill_in)

const struct route skill_routes[] = {
    { GET, "/v1/skills", skill_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/skills/{skill_id}/versions", version_list, IN(versions_fields), .role = ROLE_READER },
    { PUT, "/v1/skills/{skill_id}/versions/{version}", version_put, IN(put_fields), .role = ROLE_AGENT,
      .waits = true },
    { GET, "/v1/skills/{skill_id}/versions/{version}", version_get, IN(get_fields), .role = ROLE_READER },
    END_ROUTES,
};

/* Decision snapshots: every tick as it was posted, and what the ledger was after it. */
#include "db/db.h"
#include "handlers/routes.h"

#define LATEST "9999-12-31T23:59:59.999999Z" /* as_of of a read that asks for no instant */

struct snapshot_in {
    const char *id, *deployment_id, *engine_kind, *engine_rule, *action_kind, *since, *until, *as_of;
    int64_t limit;
    struct cursor_values cursor;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct snapshot_in, member, __VA_ARGS__)
#define AS_OF S(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)

static const struct field get_fields[] = { S(FROM_PATH, KIND_UUID, id, .required = true), AS_OF, END_FIELDS };
static const struct field list_fields[] = {
    S(FROM_QUERY, KIND_UUID, deployment_id),
    S(FROM_QUERY, KIND_LINE, engine_kind, .min = 1, .max = 200),
    S(FROM_QUERY, KIND_LINE, engine_rule, .min = 1, .max = 200),
    S(FROM_QUERY, KIND_LINE, action_kind, .min = 1, .max = 200),
    S(FROM_QUERY, KIND_TIME, since),
    S(FROM_QUERY, KIND_TIME, until),
    AS_OF,
    S(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    S(FROM_QUERY, KIND_CURSOR, cursor),
    END_FIELDS,
};
/* clang-format on */

static enum err snapshot_get(struct call *c)
{
    return db_reply(c, 200, &DECISION_SNAPSHOT_GET);
}

/* Each has an index that gives its order. */
static enum err snapshot_list(struct call *c)
{
    const struct snapshot_in *in = c->in;
    return db_reply(c, 200,
                    in->deployment_id ? &DECISION_SNAPSHOT_LIST_OF_DEPLOYMENT : &DECISION_SNAPSHOT_LIST);
}

#define IN(table) .fields = table, .in_size = sizeof(struct snapshot_in)

const struct route snapshot_routes[] = {
    { GET, "/v1/decision_snapshots", snapshot_list, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/decision_snapshots/{id}", snapshot_get, IN(get_fields), .role = ROLE_READER },
    END_ROUTES,
};

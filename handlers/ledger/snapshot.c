/* Decision snapshots: each tick as posted, and the ledger after it. */
#include "handlers/kit/export.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct snapshot_in {
    const char *id, *deployment_id, *engine_kind, *engine_rule, *action_kind, *since, *until, *as_of, *format;
    int64_t limit;
    struct cursor_values cursor;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct snapshot_in, member, __VA_ARGS__)
#define AS_OF FIELD_AS_OF(struct snapshot_in)
#define FILTER AS_OF, \
    S(FROM_QUERY, KIND_UUID, deployment_id), \
    S(FROM_QUERY, KIND_LINE, engine_kind, .min = 1, .max = 200), \
    S(FROM_QUERY, KIND_LINE, engine_rule, .min = 1, .max = 200), \
    S(FROM_QUERY, KIND_LINE, action_kind, .min = 1, .max = 200), \
    S(FROM_QUERY, KIND_TIME, since), \
    S(FROM_QUERY, KIND_TIME, until)

static const struct field get_fields[] = { FIELD_ID(struct snapshot_in), AS_OF, END_FIELDS };
static const struct field list_fields[] = { FILTER, FIELD_PAGE(struct snapshot_in), END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct snapshot_in), END_FIELDS };
/* clang-format on */

QUERY(snapshot_get, DECISION_SNAPSHOT_GET, get_fields, .missing = "decision snapshot {id}");
QUERY(snapshot_list, DECISION_SNAPSHOT_LIST, list_fields);
QUERY(snapshot_list_of_deployment, DECISION_SNAPSHOT_LIST_OF_DEPLOYMENT, list_fields);
QUERY(snapshot_export, DECISION_SNAPSHOT_LIST, export_fields);
QUERY(snapshot_export_of_deployment, DECISION_SNAPSHOT_LIST_OF_DEPLOYMENT, export_fields);

/* Each of the two lists has an index in its order. */
static enum err list_snapshots(struct call *c)
{
    const struct snapshot_in *in = c->in;
    return query_reply(c, 200, in->deployment_id ? &snapshot_list_of_deployment : &snapshot_list, in);
}

static enum err export_snapshots(struct call *c)
{
    const struct snapshot_in *in = c->in;
    return export_rows(c, in->deployment_id ? &snapshot_export_of_deployment : &snapshot_export);
}

#define IN(table) INPUT(table, struct snapshot_in)

const struct route snapshot_routes[] = {
    { GET, "/v1/decision_snapshots", list_snapshots, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/decision_snapshots/export", export_snapshots, IN(export_fields), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/decision_snapshots/{id}", .query = &snapshot_get, IN(get_fields), .role = ROLE_READER },
    END_ROUTES,
};

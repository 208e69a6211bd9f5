/* Labels: a short text under a name, by key, at any instant. */
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct label_in {
    const char *label, *caption, *at, *as_of;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define L(from, kind, member, ...) FIELD(from, kind, struct label_in, member, __VA_ARGS__)
#define LABEL L(FROM_PATH, KIND_NAME, label, .required = true)
#define AS_OF FIELD_AS_OF(struct label_in)

static const struct field put_fields[] = {
    LABEL,
    L(FROM_BODY, KIND_LINE, caption, .required = true, .min = 1, .max = 200),
    FIELD_AT(struct label_in),
    END_FIELDS,
};
static const struct field get_fields[] = { LABEL, AS_OF, END_FIELDS };
static const struct field delete_fields[] = { LABEL, L(FROM_QUERY, KIND_TIME, at, .fallback = "now"), END_FIELDS };
static const struct field history_fields[] = { LABEL, AS_OF, FIELD_PAGE(struct label_in), END_FIELDS };
/* clang-format on */

QUERY(label_put, LABEL_PUT, put_fields);
QUERY(label_get, LABEL_GET, get_fields, .missing = "label {label}");
QUERY(label_delete, LABEL_DELETE, delete_fields, .missing = "label {label}");
QUERY(label_history, LABEL_HISTORY, history_fields, .missing = "label {label}");

static enum err stored(struct call *c, const struct rows *r)
{
    return rows_count(r) ? reply_row(c, 200, r) : ERR_TIME_ORDER;
}

#define IN(table) INPUT(table, struct label_in)

const struct route label_routes[] = {
    { PUT, "/v1/labels/{label}", .query = &label_put, .render = stored, IN(put_fields), .role = ROLE_AGENT },
    { GET, "/v1/labels/{label}", .query = &label_get, IN(get_fields), .role = ROLE_READER },
    { DELETE, "/v1/labels/{label}", .query = &label_delete, .status = 204, IN(delete_fields),
      .role = ROLE_AGENT },
    { GET, "/v1/labels/{label}/history", .query = &label_history, IN(history_fields), .role = ROLE_READER },
    END_ROUTES,
};

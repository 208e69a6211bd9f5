/* Entries of the episodic memory: create, get, list and delete. */
#include "handlers/episodic/episodic.h"

#include <string.h>

#include "core/base/json_put.h"
#include "core/episodic/provenance.h"
#include "handlers/kit/export.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

struct read_in {
    const char *id, *as_of, *ticker, *task_type, *source, *embedding_status, *since, *until, *min_confidence,
        *archived, *format;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define Q(from, kind, member, ...) FIELD(from, kind, struct read_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct read_in)
#define AS_OF  FIELD_AS_OF(struct read_in)
#define FILTER AS_OF, \
    Q(FROM_QUERY, KIND_LINE, ticker, .min = 1, .max = 64), \
    Q(FROM_QUERY, KIND_LINE, task_type, .min = 1, .max = 64), \
    Q(FROM_QUERY, KIND_CHOICE, source, .choices = provenance_names), \
    Q(FROM_QUERY, KIND_CHOICE, embedding_status, .choices = CHOICES("pending", "embedded", "supplied")), \
    Q(FROM_QUERY, KIND_TIME, since), \
    Q(FROM_QUERY, KIND_TIME, until), \
    Q(FROM_QUERY, KIND_NUMBER, min_confidence, .min = 0, .max = 1), \
    Q(FROM_QUERY, KIND_BOOL, archived, .fallback = "false")

static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field delete_fields[] = { ID, END_FIELDS };
static const struct field list_fields[] = { FILTER, FIELD_PAGE(struct read_in), END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct read_in), END_FIELDS };
/* clang-format on */

QUERY(episode_get, EPISODE_GET, get_fields, .missing = "entry {id}");
QUERY(episode_delete, EPISODE_DELETE, delete_fields, .missing = "entry {id}");
QUERY(list_current, EPISODE_LIST, list_fields);
QUERY(list_archived, EPISODE_LIST_ARCHIVED, list_fields);
QUERY(export_current, EPISODE_LIST, export_fields);
QUERY(export_archived, EPISODE_LIST_ARCHIVED, export_fields);

/* ---- writing ---- */

static void put_created(struct call *c, const struct episode *e)
{
    struct buf *out = call_reply_json(c, e->known ? 200 : 201);
    buf_char(out, '{');
    episodic_members(out, e);
    json_put_bool(out, "duplicate", e->known);
    buf_char(out, '}');
    c->reply.location = arena_fmt(&c->arena, "/v1/episodic/%s", episodic_id(e));
}

static enum err create_tx(struct call *c, void *arg)
{
    struct episode *e = arg;
    TRY(episodic_store(c, &c->arena, e, 1));
    put_created(c, e);
    return OK;
}

static enum err episode_create(struct call *c)
{
    struct episode e;
    struct episode_rule rule = { 0 };
    TRY(episodic_check(c, c->in, &c->arena, &e));
    TRY(episodic_allow(c, &c->arena, &rule, &e));
    TRY(episodic_prepare(c, &c->arena, &e, 1));
    return query_tx(c, create_tx, &e);
}

/* ---- reading ---- */

static enum err episode_list(struct call *c)
{
    const struct read_in *in = c->in;
    const bool archived = field_is_true(in->archived);
    return query_reply(c, 200, archived ? &list_archived : &list_current, in);
}

static enum err export_episodes(struct call *c)
{
    const struct read_in *in = c->in;
    return export_rows(c, field_is_true(in->archived) ? &export_archived : &export_current);
}

const struct route episodic_routes[] = {
    { POST, "/v1/episodic", episode_create, INPUT(episode_fields, struct episode_in), .role = ROLE_RESEARCHER,
      .waits = true, .models = true },
    { GET, "/v1/episodic", episode_list, INPUT(list_fields, struct read_in), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/episodic/export", export_episodes, INPUT(export_fields, struct read_in), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/episodic/{id}", .query = &episode_get, INPUT(get_fields, struct read_in),
      .role = ROLE_READER },
    { DELETE, "/v1/episodic/{id}", .query = &episode_delete, .status = 204,
      INPUT(delete_fields, struct read_in), .role = ROLE_AGENT },
    END_ROUTES,
};

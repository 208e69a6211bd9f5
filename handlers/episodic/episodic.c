/* Episodic memory, entry by entry: stored once, read, listed, deleted. */
#include "handlers/episodic/episodic.h"

#include <string.h>

#include "core/episodic/provenance.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

/* Whatever a request that reads entries may carry. */
struct read_in {
    const char *id, *as_of, *ticker, *task_type, *source, *embedding_status, *since, *until, *min_confidence,
        *archived;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define Q(from, kind, member, ...) FIELD(from, kind, struct read_in, member, __VA_ARGS__)
#define ID     Q(FROM_PATH, KIND_UUID, id, .required = true)
#define AS_OF  Q(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)

static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field delete_fields[] = { ID, END_FIELDS };
static const struct field list_fields[] = {
    AS_OF,
    Q(FROM_QUERY, KIND_LINE, ticker, .min = 1, .max = 64),
    Q(FROM_QUERY, KIND_LINE, task_type, .min = 1, .max = 64),
    Q(FROM_QUERY, KIND_CHOICE, source, .choices = provenance_names),
    Q(FROM_QUERY, KIND_CHOICE, embedding_status, .choices = (const char *const[]){ "pending", "embedded", "supplied", NULL }),
    Q(FROM_QUERY, KIND_TIME, since),
    Q(FROM_QUERY, KIND_TIME, until),
    Q(FROM_QUERY, KIND_NUMBER, min_confidence, .min = 0, .max = 1),
    Q(FROM_QUERY, KIND_BOOL, archived, .fallback = "false"),
    Q(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    Q(FROM_QUERY, KIND_CURSOR, cursor),
    END_FIELDS,
};
/* clang-format on */

/* ---- writing ---- */

static void put_created(struct call *c, const struct episode *e)
{
    struct buf *out = reply_json(c, e->known ? 200 : 201);
    episode_json(out, e);
    out->len--;
    buf_text(out, ",\"duplicate\":");
    buf_json_bool(out, e->known);
    buf_char(out, '}');
    c->reply.location = arena_fmt(&c->arena, "/v1/episodic/%s", episode_id(e));
}

static enum err create_tx(struct call *c, void *arg)
{
    (void)arg;
    struct episode *e = c->in;
    TRY(episodes_store(c, e, 1));
    put_created(c, e);
    return OK;
}

static enum err episode_create(struct call *c)
{
    struct episode *e = arena_alloc(&c->arena, sizeof *e);
    bool embedded;
    TRY(episode_check(c, c->in, e));
    TRY(episodes_prepare(c, e, 1, &embedded));
    c->in = e;
    TRY(db_tx(c, create_tx, NULL));
    if (embedded && episode_saw_pending(e))
        episodes_embed_pending(c);
    return OK;
}

static enum err deleted(struct call *c, const struct rows *r)
{
    (void)r;
    c->reply.status = 204;
    return OK;
}

static enum err episode_delete(struct call *c)
{
    return db_render(c, &EPISODE_DELETE, deleted);
}

/* ---- reading ---- */

static enum err episode_get(struct call *c)
{
    return db_reply(c, 200, &EPISODE_GET);
}

static enum err episode_list(struct call *c)
{
    const struct read_in *in = c->in;
    return db_reply(c, 200, strcmp(in->archived, "true") == 0 ? &EPISODE_LIST_ARCHIVED : &EPISODE_LIST);
}

#define IN(table, type) .fields = table, .in_size = sizeof(type)

const struct route episodic_routes[] = {
    { POST, "/v1/episodic", episode_create, IN(episode_fields, struct episode_in), .role = ROLE_RESEARCHER,
      .waits = true, .models = true },
    { GET, "/v1/episodic", episode_list, IN(list_fields, struct read_in), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/episodic/{id}", episode_get, IN(get_fields, struct read_in), .role = ROLE_READER },
    { DELETE, "/v1/episodic/{id}", episode_delete, IN(delete_fields, struct read_in), .role = ROLE_AGENT },
    END_ROUTES,
};

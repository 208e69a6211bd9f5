/* Reflection notes: their history, and their promotion to a skill. */
#include "core/reflect/reflect_note.h"

#include "handlers/kit/export.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/instant.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all note routes. */
struct note_in {
    const char *id, *as_of, *at, *promoted_at;
    const char *deployment_id, *skill_id, *version, *status, *scope, *since, *until, *diff, *format;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define N(from, kind, member, ...) FIELD(from, kind, struct note_in, member, __VA_ARGS__)
#define ID    FIELD_ID(struct note_in)
#define AS_OF FIELD_AS_OF(struct note_in)
#define FILTER AS_OF, \
    N(FROM_QUERY, KIND_UUID, deployment_id), \
    N(FROM_QUERY, KIND_NAME, skill_id), \
    N(FROM_QUERY, KIND_NAME, version), \
    N(FROM_QUERY, KIND_CHOICE, status, .choices = CHOICES("active", "superseded")), \
    N(FROM_QUERY, KIND_CHOICE, scope, .choices = CHOICES("deployment", "skill")), \
    N(FROM_QUERY, KIND_TIME, since), \
    N(FROM_QUERY, KIND_TIME, until)

static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct note_in), END_FIELDS };
static const struct field list_fields[] = {
    FILTER,
    N(FROM_QUERY, KIND_BOOL, diff, .fallback = "false"),
    FIELD_PAGE(struct note_in),
    END_FIELDS,
};
static const struct field promote_fields[] = {
    ID, N(FROM_BODY, KIND_TIME, at), N(COMPUTED, KIND_LINE, promoted_at), N(COMPUTED, KIND_TIME, as_of), END_FIELDS,
};
/* clang-format on */

#define NOTE "reflection note {id}"
COLUMNS(note, lessons_text, _previous_text);
COLUMNS(promotion, deployment_id, active_id, generated_at, active_generated_at, same, promoted_at,
        before_note, before_active);
COLUMNS(promoted, id);
QUERY(note_get, REFLECTION_NOTE_GET, get_fields, READS(note), .missing = NOTE);
QUERY(note_list, REFLECTION_NOTE_LIST, list_fields, READS(note));
QUERY(note_list_of_deployment, REFLECTION_NOTE_LIST_OF_DEPLOYMENT, list_fields, READS(note));
QUERY(note_list_of_version, REFLECTION_NOTE_LIST_OF_VERSION, list_fields, READS(note));
QUERY(note_export, REFLECTION_NOTE_LIST, export_fields);
QUERY(note_export_of_deployment, REFLECTION_NOTE_LIST_OF_DEPLOYMENT, export_fields);
QUERY(note_export_of_version, REFLECTION_NOTE_LIST_OF_VERSION, export_fields);
QUERY(note_lock, REFLECTION_NOTE_LOCK, promote_fields, .missing = NOTE);
QUERY(note_promotion, REFLECTION_NOTE_PROMOTION, promote_fields, READS(promotion), .missing = NOTE);
QUERY(note_promote, REFLECTION_NOTE_PROMOTE, promote_fields, READS(promoted), .missing = NOTE);

/* ---- notes ---- */

static void put_with_diff(struct buf *out, const struct rows *r, int row)
{
    rows_json(out, r, row);
    out->len--; /* the closing brace */
    buf_json_key(out, "diff");
    reflect_note_diff_json(out, rows_text(r, row, &note._previous_text),
                           rows_text(r, row, &note.lessons_text));
    buf_char(out, '}');
}

static enum err render_note(struct call *c, const struct rows *r)
{
    put_with_diff(call_reply_json(c, 200), r, 0);
    return OK;
}

static enum err list_notes(struct call *c)
{
    const struct note_in *in = c->in;
    const struct query *q = in->deployment_id             ? &note_list_of_deployment
                            : in->skill_id && in->version ? &note_list_of_version
                                                          : &note_list;
    struct rows *r;
    TRY(query_rows(c, q, in, NULL, &r));
    return query_page(c, call_reply_json(c, 200), q, in, r, field_is_true(in->diff) ? put_with_diff : NULL);
}

static enum err export_notes(struct call *c)
{
    const struct note_in *in = c->in;
    return export_rows(c, in->deployment_id             ? &note_export_of_deployment
                          : in->skill_id && in->version ? &note_export_of_version
                                                        : &note_export);
}

/* ---- promotion ---- */

static enum err reply_note(struct call *c, int status, const char *id)
{
    const struct note_in in = { .id = id, .as_of = LATEST };
    struct rows *r;
    TRY(query_one(c, &note_get, &in, NULL, &r));
    put_with_diff(call_reply_json(c, status), r, 0);
    if (status == 201)
        c->reply.location = arena_fmt(&c->arena, "/v1/reflection_notes/%s", id);
    return OK;
}

static enum err promote_tx(struct call *c, void *arg)
{
    struct note_in in = *(const struct note_in *)arg;
    struct rows *r;
    TRY(query_one(c, &note_lock, &in, NULL, &r));
    TRY(query_one(c, &note_promotion, &in, NULL, &r));
    if (!rows_text(r, 0, &promotion.deployment_id))
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "note %s already belongs to a skill", in.id);
    if (row_bool(r, 0, &promotion.same))
        return reply_note(c, 200, rows_text(r, 0, &promotion.active_id));
    if (row_bool(r, 0, &promotion.before_note))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the note was made at %s",
                           rows_time(r, 0, &promotion.generated_at, &c->arena));
    if (row_bool(r, 0, &promotion.before_active))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the note that it replaces is from %s",
                           rows_time(r, 0, &promotion.active_generated_at, &c->arena));
    in.promoted_at = rows_text(r, 0, &promotion.promoted_at);
    TRY(query_one(c, &note_promote, &in, NULL, &r));
    c->left_unsealed = true;
    return reply_note(c, 201, rows_text(r, 0, &promoted.id));
}

static enum err promote_note(struct call *c)
{
    const struct note_in *in = c->in;
    TRY(instant_check(c, "at", in->at));
    return query_tx(c, promote_tx, c->in);
}

#define IN(table) INPUT(table, struct note_in)

const struct route reflection_note_routes[] = {
    { GET, "/v1/reflection_notes", list_notes, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/reflection_notes/export", export_notes, IN(export_fields), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/reflection_notes/{id}", .query = &note_get, .render = render_note, IN(get_fields),
      .role = ROLE_READER },
    { POST, "/v1/reflection_notes/{id}/promote", promote_note, IN(promote_fields), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};

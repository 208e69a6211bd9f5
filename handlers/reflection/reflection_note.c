/* Reflection notes: their history, and their promotion to a whole skill. */
#include "core/reflect/reflect_note.h"

#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/instant.h"
#include "handlers/routes.h"

/* Whatever a request about notes may carry. */
struct note_in {
    const char *id, *as_of, *at, *promoted_at;
    const char *deployment_id, *skill_id, *version, *status, *scope, *since, *until, *diff;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define N(from, kind, member, ...) FIELD(from, kind, struct note_in, member, __VA_ARGS__)
#define CHOICES(...) (const char *const[]){ __VA_ARGS__, NULL }
#define ID    N(FROM_PATH, KIND_UUID, id, .required = true)
#define AS_OF N(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)

static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field list_fields[] = {
    AS_OF,
    N(FROM_QUERY, KIND_UUID, deployment_id),
    N(FROM_QUERY, KIND_NAME, skill_id),
    N(FROM_QUERY, KIND_NAME, version),
    N(FROM_QUERY, KIND_CHOICE, status, .choices = CHOICES("active", "superseded")),
    N(FROM_QUERY, KIND_CHOICE, scope, .choices = CHOICES("deployment", "skill")),
    N(FROM_QUERY, KIND_TIME, since),
    N(FROM_QUERY, KIND_TIME, until),
    N(FROM_QUERY, KIND_BOOL, diff, .fallback = "false"),
    N(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    N(FROM_QUERY, KIND_CURSOR, cursor),
    END_FIELDS,
};
static const struct field promote_fields[] = {
    ID, N(FROM_BODY, KIND_TIME, at), N(COMPUTED, KIND_LINE, promoted_at), END_FIELDS,
};
/* clang-format on */

/* ---- notes ---- */

static void put_with_diff(struct buf *out, const struct rows *r, int row)
{
    rows_json(out, r, row);
    out->len--; /* the brace */
    buf_json_key(out, "diff");
    reflect_note_diff_json(out, rows_text(r, row, "_previous_text"), rows_text(r, row, "lessons_text"));
    buf_char(out, '}');
}

static enum err one(struct call *c, const struct rows *r)
{
    put_with_diff(reply_json(c, 200), r, 0);
    return OK;
}

static enum err page(struct call *c, const struct rows *r)
{
    const struct note_in *in = c->in;
    rows_page_of(reply_json(c, 200), c, r, in->diff[0] == 't' ? put_with_diff : rows_json);
    return OK;
}

static enum err note_get(struct call *c)
{
    return db_render(c, &REFLECTION_NOTE_GET, one);
}

static enum err note_list(struct call *c)
{
    const struct note_in *in = c->in;
    return db_render(c,
                     in->deployment_id             ? &REFLECTION_NOTE_LIST_OF_DEPLOYMENT
                     : in->skill_id && in->version ? &REFLECTION_NOTE_LIST_OF_VERSION
                                                   : &REFLECTION_NOTE_LIST,
                     page);
}

/* ---- promotion ---- */

static bool is_true(const struct rows *r, const char *column)
{
    const char *text = rows_text(r, 0, column);
    return text && *text == 't';
}

static enum err answer(struct call *c, int status, const char *id)
{
    const struct note_in of = { .id = id, .as_of = LATEST };
    struct rows *r;
    TRY(db_rows_from(c, &REFLECTION_NOTE_GET, get_fields, &of, &r));
    put_with_diff(reply_json(c, status), r, 0);
    if (status == 201)
        c->reply.location = arena_fmt(&c->arena, "/v1/reflection_notes/%s", id);
    return OK;
}

static enum err promote_tx(struct call *c, void *arg)
{
    (void)arg;
    struct note_in *in = c->in;
    struct rows *r;
    TRY(db_one(c, &REFLECTION_NOTE_LOCK, &r));
    TRY(db_one(c, &REFLECTION_NOTE_PROMOTION, &r));
    if (!rows_text(r, 0, "deployment_id"))
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "note %s is one of a skill already", in->id);
    if (is_true(r, "same"))
        return answer(c, 200, rows_text(r, 0, "active_id"));
    if (is_true(r, "before_note"))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the note was made at %s",
                           rows_time(&c->arena, r, 0, "generated_at"));
    if (is_true(r, "before_active"))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the note that it takes the place of is from %s",
                           rows_time(&c->arena, r, 0, "active_generated_at"));
    in->promoted_at = rows_text(r, 0, "promoted_at");
    TRY(db_one(c, &REFLECTION_NOTE_PROMOTE, &r));
    return answer(c, 201, rows_text(r, 0, "id"));
}

static enum err note_promote(struct call *c)
{
    const struct note_in *in = c->in;
    TRY(instant_check(c, "at", in->at));
    return db_tx(c, promote_tx, NULL);
}

#define IN(table) .fields = table, .in_size = sizeof(struct note_in)

const struct route reflection_note_routes[] = {
    { GET, "/v1/reflection_notes", note_list, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/reflection_notes/{id}", note_get, IN(get_fields), .role = ROLE_READER },
    { POST, "/v1/reflection_notes/{id}/promote", note_promote, IN(promote_fields), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};

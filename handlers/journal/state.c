/* The state of the journal: why each position is held, the open theses and the validated lessons. */
#include "handlers/journal/state.h"

#include <string.h>

#include "core/base/json_put.h"
#include "core/base/time_text.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"
#include "server/json/reader.h"

struct state_in {
    const char *deployment_id, *as_of;
    int64_t max_tokens;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct state_in, member, __VA_ARGS__)
static const struct field state_fields[] = {
    S(FROM_QUERY, KIND_UUID, deployment_id),
    S(FROM_QUERY, KIND_TIME, as_of),
    S(FROM_QUERY, KIND_INT, max_tokens, .min = 1, .max = 20000, .fallback = TEXT_OF(STATE_TOKENS)),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(view, deployment_id, as_of, journal_positions, journal_theses, journal_lessons);
QUERY(memory_state_get, MEMORY_STATE_GET, state_fields, READS(view), .missing = "deployment {deployment_id}");
QUERY(memory_state_shared, MEMORY_STATE_SHARED, state_fields, READS(view), .missing = "memory");

/* ---- reading the columns ---- */

/* A member of an object, and where its value goes. */
struct member {
    const char *name;
    bool time;
    void *out; /* const char ** or, for a time, int64_t * */
};

static bool take_member(struct json_reader *r, const struct member *m)
{
    const char *text = reader_text(r); /* null is skipped */
    if (m->time)
        return text && time_text_parse(text, m->out);
    *(const char **)m->out = text;
    return true;
}

static const struct member *find_member(const struct member *members, const char *name)
{
    while (members->name && strcmp(members->name, name) != 0)
        members++;
    return members->name ? members : NULL;
}

/* Reads the members of an object; `nested`, if given, takes those that are not listed. */
static bool take_object(struct json_reader *r, const struct member *members,
                        bool (*nested)(struct json_reader *r, const char *name, struct arena *arena,
                                       void *arg),
                        struct arena *arena, void *arg)
{
    bool good = reader_object(r);
    for (const char *name; good && (name = reader_name(r));) {
        const struct member *m = find_member(members, name);
        if (m)
            good = take_member(r, m);
        else if (nested)
            good = nested(r, name, arena, arg);
        else
            reader_skip(r);
    }
    return good;
}

typedef bool take_item(struct json_reader *r, struct arena *arena, void *out);

/* Reads a list into an array that grows. Null is an empty list. */
static bool take_list(struct json_reader *r, take_item *take, size_t size, struct arena *arena, void **items,
                      size_t *count)
{
    size_t room = 8;
    *count = 0;
    *items = arena_zero(arena, room * size);
    if (reader_peek(r) == 'n') {
        reader_skip(r);
        return true;
    }
    if (!reader_list(r))
        return false;
    while (reader_item(r)) {
        if (*count == room) {
            void *more = arena_zero(arena, 2 * room * size);
            memcpy(more, *items, room * size);
            *items = more;
            room *= 2;
        }
        if (!take(r, arena, (char *)*items + *count * size))
            return false;
        ++*count;
    }
    return true;
}

static bool take_thesis(struct json_reader *r, struct arena *arena, void *out)
{
    struct state_thesis *t = out;
    const struct member members[] = {
        { "id", false, &t->id },
        { "symbol", false, &t->symbol },
        { "side", false, &t->side },
        { "at", true, &t->at_us },
        { "changed_at", true, &t->changed_us },
        { "text", false, &t->text },
        { "invalidation", false, &t->invalidation },
        { "target", false, &t->target },
        { "horizon", false, &t->horizon },
        { NULL },
    };
    return take_object(r, members, NULL, arena, NULL) && t->id && t->symbol;
}

static bool take_decision(struct json_reader *r, struct state_decision *d)
{
    const struct member members[] = {
        { "id", false, &d->id },
        { "at", true, &d->at_us },
        { "action", false, &d->action },
        { "text", false, &d->text },
        { NULL },
    };
    if (reader_peek(r) != 'n')
        return take_object(r, members, NULL, NULL, NULL) && d->id && d->action && d->text;
    reader_skip(r);
    return true;
}

static bool take_closed(struct json_reader *r, struct state_closed *closed)
{
    const struct member members[] = {
        { "id", false, &closed->id },
        { "at", true, &closed->at_us },
        { "text", false, &closed->reason },
        { NULL },
    };
    if (reader_peek(r) != 'n')
        return take_object(r, members, NULL, NULL, NULL) && closed->id && closed->reason;
    reader_skip(r);
    return true;
}

static bool take_of_position(struct json_reader *r, const char *name, struct arena *arena, void *arg)
{
    struct state_position *p = arg;
    if (strcmp(name, "decision") == 0)
        return take_decision(r, &p->decision);
    if (strcmp(name, "closed") == 0)
        return take_closed(r, &p->closed);
    void *theses;
    if (strcmp(name, "theses") != 0 ||
        !take_list(r, take_thesis, sizeof *p->theses, arena, &theses, &p->thesis_count))
        return false;
    p->theses = theses;
    return true;
}

static bool take_position(struct json_reader *r, struct arena *arena, void *out)
{
    struct state_position *p = out;
    const struct member members[] = {
        { "trade_id", false, &p->trade_id },
        { "symbol", false, &p->symbol },
        { "side", false, &p->side },
        { "entry_tick_at", true, &p->entry_us },
        { "entry_reason", false, &p->entry_reason },
        { NULL },
    };
    return take_object(r, members, take_of_position, arena, p) && p->trade_id && p->symbol && p->side;
}

static bool take_lesson(struct json_reader *r, struct arena *arena, void *out)
{
    struct state_lesson *l = out;
    const struct member members[] = {
        { "id", false, &l->id },
        { "at", true, &l->at_us },
        { "validated_at", true, &l->validated_us },
        { "takeaway", false, &l->takeaway },
        { NULL },
    };
    return take_object(r, members, NULL, arena, NULL) && l->id && l->takeaway;
}

/* Items of the last changes: {"more":1,"items":[…]}. */
struct found {
    take_item *take;
    size_t size, count;
    void *items;
    bool more; /* older changes may exist that were not read */
};

static bool take_found(struct json_reader *r, struct arena *arena, struct found *f)
{
    bool good = reader_object(r);
    for (const char *name; good && (name = reader_name(r));)
        if (strcmp(name, "more") == 0)
            f->more = reader_count(r) > 0;
        else
            good = take_list(r, f->take, f->size, arena, &f->items, &f->count);
    return good;
}

static bool read_found(struct arena *arena, const char *json, struct found *f)
{
    if (!json)
        return true;
    char *text = arena_text(arena, json);
    struct json_reader r = reader_begin_stored(text, strlen(text));
    return take_found(&r, arena, f) && reader_ended(&r);
}

static bool read_positions(struct arena *arena, const char *json, struct state *s)
{
    void *items;
    if (!json)
        return true;
    char *text = arena_text(arena, json);
    struct json_reader r = reader_begin_stored(text, strlen(text));
    if (!take_list(&r, take_position, sizeof *s->positions, arena, &items, &s->position_count))
        return false;
    s->positions = items;
    return reader_ended(&r);
}

enum err state_read(struct arena *arena, const struct state_columns *columns, struct state *state)
{
    struct found theses = { .take = take_thesis, .size = sizeof *state->theses };
    struct found lessons = { .take = take_lesson, .size = sizeof *state->lessons };
    *state = (struct state){ 0 };
    if (!read_positions(arena, columns->positions, state) || !read_found(arena, columns->theses, &theses) ||
        !read_found(arena, columns->lessons, &lessons))
        return ERR_INTERNAL;
    state->theses = theses.items;
    state->thesis_count = theses.count;
    state->more_theses = theses.more;
    state->lessons = lessons.items;
    state->lesson_count = lessons.count;
    state->more_lessons = lessons.more;
    return OK;
}

/* ---- the route ---- */

static bool names_deployment(const struct call *c)
{
    const struct state_in *in = c->in;
    return in->deployment_id != NULL;
}

static enum err render_state(struct call *c, const struct rows *r)
{
    const struct state_in *in = c->in;
    const struct state_columns columns = {
        .positions = rows_text(r, 0, &view.journal_positions),
        .theses = rows_text(r, 0, &view.journal_theses),
        .lessons = rows_text(r, 0, &view.journal_lessons),
    };
    struct state state;
    TRY(state_read(&c->arena, &columns, &state));
    struct buf text = { .arena = &c->arena };
    const struct state_shown shown = state_text(&text, &state, (size_t)in->max_tokens, false);
    if (call_prefers(c, "text/markdown"))
        return call_reply_text(c, 200, "text/markdown; charset=utf-8", buf_string(&text));
    struct buf *out = call_reply_json(c, 200);
    buf_char(out, '{');
    json_put_text(out, "deployment_id", rows_text(r, 0, &view.deployment_id));
    json_put_time(out, "as_of", row_time_us(r, 0, &view.as_of, 0));
    json_put_text(out, "markdown", buf_string(&text));
    json_put_int(out, "tokens", (int64_t)shown.tokens);
    json_put_int(out, "max_tokens", in->max_tokens);
    state_members(out, &state, &shown);
    buf_char(out, '}');
    return OK;
}

const struct route memory_state_routes[] = {
    { GET, "/v1/memory_state", .query = &memory_state_shared, .query_if = names_deployment,
      .other_query = &memory_state_get, .render = render_state, INPUT(state_fields, struct state_in),
      .role = ROLE_READER },
    END_ROUTES,
};

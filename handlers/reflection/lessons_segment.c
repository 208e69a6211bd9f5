/* The segment of a system prompt: the lessons in force for a deployment. */
#include <string.h>

#include "core/base/tokens.h"
#include "core/base/json_put.h"
#include "core/reflect/lessons_hash.h"
#include "handlers/kit/fields.h"
#include "handlers/reflection/reflection.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct segment_in {
    const char *id, *as_of;
    struct texts suppress;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct segment_in, member, __VA_ARGS__)
static const struct field segment_fields[] = {
    FIELD_ID(struct segment_in),
    S(FROM_QUERY, KIND_TIME, as_of),
    S(FROM_QUERY, KIND_TAGS, suppress, .min = 1, .max = REFLECT_SLOTS - 1, .item_max = 64),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(row, deployment_id, as_of, memory_enabled, note_id, note_scope, lessons_text, suppressed);
QUERY(lessons_segment, LESSONS_SEGMENT_GET, segment_fields, READS(row), .missing = "deployment {id}");

/* Texts are NULL if there are no lessons. */
struct segment {
    const char *note_id, *scope, *lessons, *hash, *text;
    slot_set suppressed;
};

/* The hash is that of the text without the suppressed slots, so that trades count for what the agent saw. */
static struct segment segment_of(struct call *c, const struct rows *r)
{
    const struct segment_in *in = c->in;
    const slot_set asked = reflection_slot_set(&in->suppress);
    struct segment s = { .note_id = rows_text(r, 0, &row.note_id),
                         .scope = rows_text(r, 0, &row.note_scope),
                         .suppressed = asked };
    if (!s.note_id)
        return s;
    s.suppressed |= slot_set_listed(rows_text(r, 0, &row.suppressed));
    const char *lessons = reflect_note_without(&c->arena, rows_text(r, 0, &row.lessons_text), asked);
    if (!*lessons)
        return s;
    char *hash = arena_alloc(&c->arena, LESSONS_HASH_SIZE);
    lessons_hash(lessons, strlen(lessons), hash);
    s.lessons = lessons;
    s.hash = hash;
    s.text = reflect_note_segment(&c->arena, lessons);
    return s;
}

static void put_suppressed(struct buf *out, slot_set slots)
{
    const struct texts names = reflection_slot_names(out->arena, slots);
    json_put_texts(out, "suppressed", names.items, names.count);
}

static enum err render_segment(struct call *c, const struct rows *r)
{
    const struct segment_in *in = c->in;
    const bool enabled = row_bool(r, 0, &row.memory_enabled);
    const struct segment s =
        enabled ? segment_of(c, r) : (struct segment){ .suppressed = reflection_slot_set(&in->suppress) };
    const char *text = s.text ? s.text : "";
    if (call_prefers(c, "text/markdown"))
        return call_reply_text(c, 200, "text/markdown; charset=utf-8", text);
    struct buf *out = call_reply_json(c, 200);
    buf_fmt(out, "{\"deployment_id\":\"%s\",\"as_of\":\"%s\",\"enabled\":%s",
            rows_text(r, 0, &row.deployment_id), rows_time(r, 0, &row.as_of, &c->arena),
            enabled ? "true" : "false");
    json_put_text(out, "note_id", s.note_id);
    json_put_text(out, "scope", s.scope);
    json_put_text(out, "lessons_hash", s.hash);
    put_suppressed(out, s.suppressed);
    json_put_text(out, "text", text);
    json_put_text(out, "lessons_text", s.lessons);
    buf_fmt(out, ",\"tokens\":%zu}", tokens_estimate(text, strlen(text)));
    return OK;
}

static enum err check_suppress(struct call *c)
{
    const struct segment_in *in = c->in;
    return reflection_check_slots(c, "suppress", &in->suppress);
}

const struct route lessons_segment_routes[] = {
    { GET, "/v1/deployments/{id}/lessons_segment", .prepare = check_suppress, .query = &lessons_segment,
      .render = render_segment, INPUT(segment_fields, struct segment_in), .role = ROLE_READER },
    END_ROUTES,
};

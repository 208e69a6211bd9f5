/* Lessons of the research process, and the block of lessons for prompts. */
#include "core/lessons/lesson.h"

#include <string.h>

#include "core/lessons/similar.h"
#include "handlers/kit/export.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/lesson.h"
#include "handlers/routes.h"

/* The input of all lesson routes. */
struct lesson_in {
    const char *id, *at, *as_of, *since, *until;
    const char *context, *takeaway, *reason, *by, *into, *status, *active, *text, *format;
    struct texts tags, tags_all, evidence, ids, similar_keys;
    struct cursor_values cursor;
    int64_t limit, max_tokens, stale_days, max_pairs;
    const char *outcome;               /* of a lesson: text */
    struct lesson_outcome *validation; /* of a validation: data */
};

/* The parameters of the statements that lock and change lessons. */
struct lesson_change {
    const char *at, *to_status, *reason, *superseded_by, *into, *agent_name, *model_call_id;
    struct texts ids;
    struct lesson_outcome *validation;
};

/* clang-format off */
#define L(from, kind, member, ...) FIELD(from, kind, struct lesson_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct lesson_in)
#define AT     FIELD_AT(struct lesson_in)
#define AS_OF  FIELD_AS_OF(struct lesson_in)
#define PAGE   FIELD_PAGE(struct lesson_in)
#define TAGS   L(FROM_QUERY, KIND_TAGS, tags, .min = 1, .max = 16, .item_max = 64)
#define STATUS L(FROM_QUERY, KIND_CHOICE, status, .choices = lesson_status_names)
#define REASON L(FROM_BODY, KIND_TEXT, reason, .min = 1, .max = 500)
#define FILTER AS_OF, TAGS, STATUS, \
    L(FROM_QUERY, KIND_TAGS, tags_all, .min = 1, .max = 16, .item_max = 64), \
    L(FROM_QUERY, KIND_BOOL, active), \
    L(FROM_QUERY, KIND_LINE, text, .min = 1, .max = 200), \
    L(FROM_QUERY, KIND_TIME, since), \
    L(FROM_QUERY, KIND_TIME, until)

static const struct field create_fields[] = {
    L(FROM_BODY, KIND_LINE, takeaway, .required = true, .min = 1, .max = 300),
    L(FROM_BODY, KIND_TEXT, context, .required = true, .min = 1, .max = 2000),
    L(FROM_BODY, KIND_TEXT, outcome, .required = true, .min = 1, .max = 2000),
    L(FROM_BODY, KIND_TAGS, tags, .required = true, .min = 1, .max = 16, .item_max = 64),
    L(FROM_BODY, KIND_TEXTS, evidence, .required = true, .min = 1, .max = 32, .item_max = 500),
    AT,
    L(COMPUTED, KIND_TEXTS, similar_keys),
    END_FIELDS,
};
static const struct field get_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field history_fields[] = { ID, AS_OF, PAGE, END_FIELDS };
static const struct field list_fields[] = { FILTER, PAGE, END_FIELDS };
static const struct field export_fields[] = {
    FILTER,
    FIELD_EXPORT_OF(struct lesson_in, CHOICES("ndjson", "csv", "parquet", "jsonl", "md")),
    END_FIELDS,
};
static const struct field block_fields[] = {
    AS_OF, TAGS, STATUS,
    L(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 150, .fallback = "30"),
    L(FROM_QUERY, KIND_INT, max_tokens, .min = 1, .max = 20000, .fallback = "2000"),
    END_FIELDS,
};
static const struct field curation_fields[] = {
    L(FROM_QUERY, KIND_TIME, as_of, .fallback = "now"),
    L(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    L(FROM_QUERY, KIND_INT, stale_days, .min = 1, .max = 3650, .fallback = "90"),
    L(COMPUTED, KIND_INT, max_pairs),
    END_FIELDS,
};

#define O(kind, member, ...) FIELD(FROM_BODY, kind, struct lesson_outcome, member, __VA_ARGS__)
static const struct field outcome_fields[] = {
    O(KIND_LINE, metric, .required = true, .min = 1, .max = 100),
    O(KIND_NUMBER, value, .required = true),
    O(KIND_NUMBER, baseline),
    O(KIND_INT, sample_size, .required = true, .min = 1, .max = 1000000000),
    O(KIND_TEXT, note, .min = 1, .max = 500),
    END_FIELDS,
};
static const struct field validate_fields[] = {
    ID, REASON, AT,
    { .name = "outcome", .from = FROM_BODY, .kind = KIND_OBJECT, .offset = offsetof(struct lesson_in, validation), .required = true,
      SUB(outcome_fields, struct lesson_outcome) },
    END_FIELDS,
};
static const struct field retire_fields[] = {
    ID, L(FROM_BODY, KIND_TEXT, reason, .required = true, .min = 1, .max = 500), AT, END_FIELDS,
};
static const struct field supersede_fields[] = { ID, REASON, AT, L(FROM_BODY, KIND_UUID, by, .required = true), END_FIELDS };
static const struct field merge_fields[] = {
    AT, REASON,
    L(FROM_BODY, KIND_UUID, into, .required = true),
    L(FROM_BODY, KIND_UUIDS, ids, .required = true, .min = 1, .max = 31),
    END_FIELDS,
};

#define C(kind, member, ...) FIELD(COMPUTED, kind, struct lesson_change, member, __VA_ARGS__)
static const struct field change_fields[] = {
    C(KIND_TIME, at), C(KIND_UUIDS, ids), C(KIND_CHOICE, to_status), C(KIND_TEXT, reason),
    C(KIND_OBJECT, validation, SUB(outcome_fields, struct lesson_outcome)),
    C(KIND_UUID, superseded_by), C(KIND_UUID, into), C(KIND_LINE, agent_name), C(KIND_LINE, model_call_id),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(new_lesson, id);
COLUMNS(current, id, status, known_from, too_early);
COLUMNS(exported, id, at, takeaway, context, outcome, status, status_at, status_reason, superseded_by, _tags,
        _evidence, _metric, _value, _sample_size, _baseline, _note);
COLUMNS(pair, a, b, score, takeaway_a, takeaway_b);

QUERY(lesson_create, LESSON_CREATE, create_fields, READS(new_lesson));
QUERY(lesson_lock, LESSON_LOCK, change_fields);
QUERY(lesson_current, LESSON_CURRENT, change_fields, READS(current));
QUERY(lesson_change, LESSON_CHANGE, change_fields);
QUERY(lesson_merge_into, LESSON_MERGE_INTO, change_fields, .missing = "lesson {into}");
QUERY(lesson_get, LESSON_GET, get_fields, .missing = "lesson {id}");
QUERY(lesson_list, LESSON_LIST, list_fields);
QUERY(lesson_history, LESSON_HISTORY, history_fields, .missing = "lesson {id}");
QUERY(lesson_block, LESSON_BLOCK, block_fields, READS(lesson_used));
QUERY(lesson_export, LESSON_EXPORT, export_fields, READS(exported));
QUERY(lesson_pairs, LESSON_PAIRS, curation_fields, READS(pair));
QUERY(lesson_stale, LESSON_STALE, curation_fields);

/* ---- writing ---- */

static struct texts similar_keys_of(struct call *c, const char *takeaway)
{
    int32_t keys[SIMILAR_KEYS];
    similar_keys(c->owner, takeaway, keys);
    const char **items = arena_alloc(&c->arena, SIMILAR_KEYS * sizeof *items);
    for (int i = 0; i < SIMILAR_KEYS; i++)
        items[i] = arena_fmt(&c->arena, "%d", (int)keys[i]);
    return (struct texts){ SIMILAR_KEYS, items };
}

static enum err prepare_create(struct call *c)
{
    struct lesson_in *in = c->in;
    if (lesson_has_markup(in->takeaway))
        return problem_field(&c->problem, "takeaway", FAULT_RESERVED_MARKUP,
                             "must not contain the tags of the <learned_patterns> block");
    in->similar_keys = similar_keys_of(c, in->takeaway);
    return OK;
}

static enum err render_new_lesson(struct call *c, const struct rows *r)
{
    c->left_unsealed = true;
    c->left_pending = true;
    return reply_created(c, r, "/v1/lessons", &new_lesson.id);
}

enum err lesson_store(struct call *c, const struct lesson_new *lesson, struct rows **row)
{
    const struct lesson_in in = {
        .at = lesson->at,
        .context = lesson->context,
        .outcome = lesson->outcome,
        .takeaway = lesson->takeaway,
        .tags = lesson->tags,
        .evidence = lesson->evidence,
        .similar_keys = similar_keys_of(c, lesson->takeaway),
    };
    c->left_unsealed = true;
    c->left_pending = true;
    return query_rows(c, &lesson_create, &in, NULL, row);
}

static bool is_among(const struct rows *r, const char *id)
{
    for (int i = 0; i < rows_count(r); i++)
        if (strcmp(rows_text(r, i, &current.id), id) == 0)
            return true;
    return false;
}

static enum err unknown_lesson(struct call *c, const char *field, const char *id)
{
    return field ? problem_field(&c->problem, field, FAULT_UNKNOWN_REFERENCE, "there is no lesson %s", id)
                 : problem_set(&c->problem, ERR_NOT_FOUND, "there is no lesson %s", id);
}

/* Locks the current versions of the lessons and checks that each may change to `to` at that time. `field`:
 * see unknown_lesson. */
static enum err lock_lessons(struct call *c, const char *at, struct texts ids, enum lesson_status to,
                             const char *field)
{
    const struct lesson_change change = { .at = at, .ids = ids };
    struct rows *r;
    TRY(query_run(c, &lesson_lock, &change));
    TRY(query_rows(c, &lesson_current, &change, NULL, &r));
    for (size_t i = 0; i < ids.count; i++)
        if (!is_among(r, ids.items[i]))
            return unknown_lesson(c, field, ids.items[i]);
    for (int i = 0; i < rows_count(r); i++) {
        const char *id = rows_text(r, i, &current.id), *name = rows_text(r, i, &current.status);
        enum lesson_status from = LESSON_PROPOSED;
        if (!lesson_status_find(name, &from) || !lesson_may_become(from, to))
            return problem_set(&c->problem, ERR_INVALID_TRANSITION, "lesson %s is %s and cannot become %s",
                               id, name, lesson_status_names[to]);
        if (row_bool(r, i, &current.too_early))
            return problem_set(&c->problem, ERR_TIME_ORDER,
                               "lesson %s is dated %s, which is later than the change", id,
                               rows_time(r, i, &current.known_from, &c->arena));
    }
    c->left_unsealed = true; /* the change that follows leaves an event */
    return OK;
}

/* Locks the lesson and the one that supersedes it, if any, at once and in a fixed order, so that two requests
 * cannot deadlock. Both must be active, so both pass the same check. */
static enum err change_status(struct call *c, const struct lesson_in *in, enum lesson_status to)
{
    const char *ids[] = { in->id, in->by };
    const struct lesson_change change = {
        .at = in->at,
        .ids = { 1, ids },
        .to_status = lesson_status_names[to],
        .reason = in->reason,
        .validation = in->validation,
        .superseded_by = in->by,
    };
    struct rows *r;
    TRY(lock_lessons(c, in->at, (struct texts){ in->by ? 2 : 1, ids }, to, NULL));
    TRY(query_rows(c, &lesson_change, &change, NULL, &r));
    return reply_row(c, 200, r);
}

enum err lesson_validate_all(struct call *c, const struct lesson_validation *v)
{
    const struct lesson_change change = {
        .at = v->at,
        .ids = v->ids,
        .to_status = lesson_status_names[LESSON_VALIDATED],
        .reason = v->reason,
        .validation = v->outcome,
        .agent_name = v->agent_name,
        .model_call_id = v->model_call_id,
    };
    TRY(lock_lessons(c, v->at, v->ids, LESSON_VALIDATED, v->field));
    return query_run(c, &lesson_change, &change);
}

static enum err validate_tx(struct call *c, void *arg)
{
    return change_status(c, arg, LESSON_VALIDATED);
}

static enum err retire_tx(struct call *c, void *arg)
{
    return change_status(c, arg, LESSON_RETIRED);
}

static enum err supersede_tx(struct call *c, void *arg)
{
    return change_status(c, arg, LESSON_SUPERSEDED);
}

static enum err lesson_validate(struct call *c)
{
    return query_tx(c, validate_tx, c->in);
}

static enum err lesson_retire(struct call *c)
{
    return query_tx(c, retire_tx, c->in);
}

static enum err lesson_supersede(struct call *c)
{
    const struct lesson_in *in = c->in;
    if (strcmp(in->by, in->id) == 0)
        return problem_field(&c->problem, "by", FAULT_DUPLICATE_ITEM, "a lesson cannot supersede itself");
    return query_tx(c, supersede_tx, c->in);
}

/* Locks the lesson that remains together with the merged ones, for the same reason. */
static enum err lock_merged(struct call *c, const struct lesson_in *in)
{
    const char **all = arena_alloc(&c->arena, (in->ids.count + 1) * sizeof *all);
    memcpy(all, in->ids.items, in->ids.count * sizeof *all);
    all[in->ids.count] = in->into;
    return lock_lessons(c, in->at, (struct texts){ in->ids.count + 1, all }, LESSON_SUPERSEDED, NULL);
}

static enum err merge_tx(struct call *c, void *arg)
{
    const struct lesson_in *in = arg;
    const struct lesson_change change = {
        .at = in->at,
        .ids = in->ids,
        .to_status = lesson_status_names[LESSON_SUPERSEDED],
        .reason = in->reason,
        .superseded_by = in->into,
        .into = in->into,
    };
    struct rows *into, *merged;
    TRY(lock_merged(c, in));
    TRY(query_one(c, &lesson_merge_into, &change, NULL, &into));
    TRY(query_rows(c, &lesson_change, &change, NULL, &merged));
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"lesson\":");
    rows_json(out, into, 0);
    buf_text(out, ",\"merged\":[");
    for (size_t i = 0; i < in->ids.count; i++)
        buf_fmt(out, "%s\"%s\"", i ? "," : "", in->ids.items[i]);
    buf_text(out, "]}");
    return OK;
}

static enum err lesson_merge(struct call *c)
{
    const struct lesson_in *in = c->in;
    for (size_t i = 0; i < in->ids.count; i++)
        if (strcmp(in->ids.items[i], in->into) == 0)
            return problem_field(&c->problem, "ids", FAULT_DUPLICATE_ITEM,
                                 "a lesson cannot be merged into itself");
    return query_tx(c, merge_tx, c->in);
}

/* ---- reading ---- */

enum err lesson_list_active(struct call *c, struct texts tags, const char *as_of, struct rows **rows)
{
    const struct lesson_in in = { .tags = tags, .as_of = as_of, .limit = 30 };
    return query_rows(c, &lesson_block, &in, NULL, rows);
}

static enum err render_block(struct call *c, const struct rows *r)
{
    const struct lesson_in *in = c->in;
    size_t count = (size_t)rows_count(r);
    const char **takeaways = arena_alloc(&c->arena, (count + 1) * sizeof *takeaways);
    for (size_t i = 0; i < count; i++)
        takeaways[i] = rows_text(r, (int)i, &lesson_used.takeaway);
    size_t total = count ? (size_t)row_int(r, 0, &lesson_used.total, 0) : 0;
    struct buf text = { .arena = &c->arena };
    struct lesson_block b = lesson_block_render(&text, takeaways, count, (size_t)in->max_tokens);
    if (call_prefers(c, "text/plain"))
        return call_reply_text(c, 200, "text/plain; charset=utf-8", buf_string(&text));
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"text\":");
    buf_json_text(out, text.data, text.len);
    buf_fmt(out, ",\"tokens\":%zu,\"count\":%zu,\"omitted\":%zu,\"lesson_ids\":[", b.tokens, b.count,
            total - b.count);
    for (size_t i = b.count; i > 0; i--) /* in the order of the text: newest last */
        buf_fmt(out, "%s\"%s\"", i < b.count ? "," : "", rows_text(r, (int)i - 1, &lesson_used.id));
    buf_text(out, "]}");
    return OK;
}

static void put_markdown(struct buf *out, const struct rows *r, int row)
{
    const struct lesson_text text = {
        .id = rows_text(r, row, &exported.id),
        .at = rows_time(r, row, &exported.at, out->arena),
        .takeaway = rows_text(r, row, &exported.takeaway),
        .context = rows_text(r, row, &exported.context),
        .outcome = rows_text(r, row, &exported.outcome),
        .tags = rows_text(r, row, &exported._tags),
        .evidence = rows_text(r, row, &exported._evidence),
        .status = rows_text(r, row, &exported.status),
        .status_at = rows_time(r, row, &exported.status_at, out->arena),
        .status_reason = rows_text(r, row, &exported.status_reason),
        .superseded_by = rows_text(r, row, &exported.superseded_by),
        .metric = rows_text(r, row, &exported._metric),
        .value = rows_text(r, row, &exported._value),
        .sample_size = rows_text(r, row, &exported._sample_size),
        .baseline = rows_text(r, row, &exported._baseline),
        .note = rows_text(r, row, &exported._note),
    };
    lesson_markdown(out, &text);
}

static void put_title(struct buf *out, const struct rows *r)
{
    (void)r;
    buf_text(out, "# Lessons\n\n");
}

static const struct export_text markdown = { "md", "text/markdown; charset=utf-8", put_title, put_markdown };

static enum err export_lessons(struct call *c)
{
    const struct lesson_in *in = c->in;
    return strcmp(in->format, markdown.suffix) == 0 ? export_as_text(c, &lesson_export, &markdown)
                                                    : export_rows(c, &lesson_export);
}

/* Appends a conflict, which has a reason, or a duplicate, which has none. */
static void put_pair(struct buf *out, const struct rows *r, int row, const char *reason)
{
    buf_fmt(out, "%s{\"a\":\"%s\",\"b\":\"%s\",\"score\":%s", out->data[out->len - 1] == '[' ? "" : ",",
            rows_text(r, row, &pair.a), rows_text(r, row, &pair.b), rows_text(r, row, &pair.score));
    if (reason) {
        buf_text(out, ",\"reason\":");
        buf_json_string(out, reason);
    }
    buf_char(out, '}');
}

static enum err curate(struct call *c)
{
    enum { PAIRS_MAX = 1000 };
    struct lesson_in *in = c->in;
    struct rows *pairs, *stale;
    in->max_pairs = PAIRS_MAX;
    TRY(query_rows(c, &lesson_pairs, in, NULL, &pairs));
    TRY(query_rows(c, &lesson_stale, in, NULL, &stale));
    struct buf duplicates = { .arena = &c->arena }, conflicts = { .arena = &c->arena };
    buf_char(&duplicates, '[');
    buf_char(&conflicts, '[');
    int64_t duplicate_count = 0, conflict_count = 0;
    for (int i = 0; i < rows_count(pairs); i++) {
        const char *reason = lesson_conflict(rows_text(pairs, i, &pair.takeaway_a),
                                             rows_text(pairs, i, &pair.takeaway_b), &c->arena);
        if (reason && conflict_count++ < in->limit)
            put_pair(&conflicts, pairs, i, reason);
        else if (!reason && lesson_is_duplicate(row_double(pairs, i, &pair.score, 0)) &&
                 duplicate_count++ < in->limit)
            put_pair(&duplicates, pairs, i, NULL);
    }
    int stale_count = rows_count(stale) > in->limit ? (int)in->limit : rows_count(stale);
    struct buf *out = call_reply_json(c, 200);
    buf_fmt(out, "{\"duplicates\":%s],\"conflicts\":%s],\"stale\":[", buf_string(&duplicates),
            buf_string(&conflicts));
    for (int i = 0; i < stale_count; i++) {
        if (i)
            buf_char(out, ',');
        rows_json(out, stale, i);
    }
    buf_text(out, "],\"more\":");
    buf_json_bool(out, rows_count(stale) > stale_count || duplicate_count > in->limit ||
                           conflict_count > in->limit || rows_count(pairs) == PAIRS_MAX);
    buf_char(out, '}');
    return OK;
}

#define IN(table) INPUT(table, struct lesson_in)

const struct route lesson_routes[] = {
    { POST, "/v1/lessons", .prepare = prepare_create, .query = &lesson_create, .render = render_new_lesson,
      IN(create_fields), .role = ROLE_RESEARCHER },
    { GET, "/v1/lessons", .query = &lesson_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/lessons/block", .query = &lesson_block, .render = render_block, IN(block_fields),
      .role = ROLE_READER },
    { GET, "/v1/lessons/export", export_lessons, IN(export_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/lessons/curation", curate, IN(curation_fields), .role = ROLE_READER, .waits = true },
    { POST, "/v1/lessons/merge", lesson_merge, IN(merge_fields), .role = ROLE_AGENT, .waits = true },
    { GET, "/v1/lessons/{id}", .query = &lesson_get, IN(get_fields), .role = ROLE_READER },
    { GET, "/v1/lessons/{id}/history", .query = &lesson_history, IN(history_fields), .role = ROLE_READER },
    { POST, "/v1/lessons/{id}/validate", lesson_validate, IN(validate_fields), .role = ROLE_AGENT,
      .waits = true },
    { POST, "/v1/lessons/{id}/retire", lesson_retire, IN(retire_fields), .role = ROLE_AGENT, .waits = true },
    { POST, "/v1/lessons/{id}/supersede", lesson_supersede, IN(supersede_fields), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};

/* The decision context: the part of its own track record that an agent sees. */
#include "core/ledger/context.h"

#include "core/base/list_text.h"
#include "core/base/tokens.h"
#include "core/base/json_put.h"
#include "core/reflect/reflect_note.h"
#include "handlers/journal/state.h"
#include "handlers/kit/fields.h"
#include "handlers/ledger/context.h"
#include "handlers/ledger/trade_rows.h"
#include "handlers/recall/recall.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

enum { USUAL_BYTES = 4096 }; /* reserved at once: the usual length of a context */

struct context_in {
    const char *id, *as_of, *lessons, *recall, *journal;
    int64_t max_tokens, k;
    int64_t window_us, max_rejections; /* of the risk state */
};

/* clang-format off */
#define C(from, kind, member, ...) FIELD(from, kind, struct context_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct context_in)
#define NOW    C(FROM_QUERY, KIND_TIME, as_of)
#define WINDOW C(COMPUTED, KIND_INT, window_us), C(COMPUTED, KIND_INT, max_rejections)
#define BUDGET C(FROM_QUERY, KIND_INT, max_tokens, .min = 1, .max = 20000, .fallback = TEXT_OF(CONTEXT_TOKENS)), \
               C(FROM_QUERY, KIND_INT, k, .min = 0, .max = CONTEXT_TRADES_MAX), \
               C(FROM_QUERY, KIND_BOOL, lessons, .fallback = "true"), \
               C(FROM_QUERY, KIND_BOOL, journal, .fallback = "false")

static const struct field risk_state_fields[] = { ID, NOW, WINDOW, END_FIELDS };
static const struct field context_fields[] = { ID, NOW, WINDOW, BUDGET, C(FROM_QUERY, KIND_TEXT, recall, .min = 1, .max = 2000), END_FIELDS };
static const struct field snapshot_fields[] = { ID, FIELD_AS_OF(struct context_in), WINDOW, BUDGET, END_FIELDS };
/* clang-format on */

COLUMNS(risk, deployment_id, as_of, tick_at, executed_today, realized_today_usd, day_start_equity_usd,
        losing_closes, rejections);
COLUMNS(view, deployment_id, as_of, tick_at, executed_today, realized_today_usd, day_start_equity_usd,
        losing_closes, rejections, memory_enabled, open, closed, note_id, note_scope, lessons_text,
        lessons_hash, journal_positions, journal_theses, journal_lessons);
QUERY(risk_state_get, RISK_STATE_GET, risk_state_fields, READS(risk), .missing = "deployment {id}");
QUERY(context_get, CONTEXT_GET, context_fields, READS(view), .missing = "deployment {id}");
QUERY(context_journal_get, CONTEXT_JOURNAL_GET, context_fields, READS(view), .missing = "deployment {id}");
QUERY(snapshot_context_journal, DECISION_SNAPSHOT_CONTEXT_JOURNAL, snapshot_fields, READS(view),
      .missing = "decision snapshot {id}");
QUERY(snapshot_context, DECISION_SNAPSHOT_CONTEXT, snapshot_fields, READS(view),
      .missing = "decision snapshot {id}");

static enum err set_window(struct call *c)
{
    struct context_in *in = c->in;
    in->window_us = RISK_WINDOW_US;
    in->max_rejections = RISK_REJECTIONS_MAX;
    return OK;
}

/* The session of a row, by the handles of its set. */
#define SESSION_OF(r, set)                                                      \
    (struct session)                                                            \
    {                                                                           \
        .last_tick_us = row_time_us(r, 0, &(set).tick_at, MATERIALIZE_NO_TICK), \
        .day_start_equity = row_decimal(r, 0, &(set).day_start_equity_usd),     \
        .realized_today = row_decimal(r, 0, &(set).realized_today_usd),         \
        .executed_today = row_int(r, 0, &(set).executed_today, 0),              \
        .losing_closes = row_int(r, 0, &(set).losing_closes, 0),                \
    }

static struct risk_state risk_of(struct arena *arena, const char *rejections, const struct session *session,
                                 int64_t now_us)
{
    struct risk_state state = { 0 };
    size_t count;
    const char **rules = list_text_split(arena, rejections, &count);
    risk_state_add_rejections(&state, arena, rules, count);
    risk_state_add_session(&state, session, now_us);
    return state;
}

/* ---- responses ---- */

static void put_head(struct buf *out, const char *deployment_id, int64_t now_us)
{
    buf_char(out, '{');
    json_put_text(out, "deployment_id", deployment_id);
    json_put_time(out, "as_of", now_us);
}

static void put_text(struct buf *out, const struct buf *text, size_t tokens)
{
    buf_json_key(out, "markdown");
    buf_json_text(out, text->data ? text->data : "", text->len);
    json_put_int(out, "tokens", (int64_t)tokens);
}

static bool wants_markdown(struct call *c)
{
    return call_prefers(c, "text/markdown");
}

static enum err reply_markdown(struct call *c, struct buf *text)
{
    return call_reply_text(c, 200, "text/markdown; charset=utf-8", buf_string(text));
}

static enum err render_risk_state(struct call *c, const struct rows *r)
{
    const int64_t now_us = row_time_us(r, 0, &risk.as_of, 0);
    const struct session session = SESSION_OF(r, risk);
    const struct risk_state state = risk_of(&c->arena, rows_text(r, 0, &risk.rejections), &session, now_us);
    struct buf text = { .arena = &c->arena };
    risk_state_text(&text, &state);
    if (wants_markdown(c))
        return reply_markdown(c, &text);
    struct buf *out = call_reply_json(c, 200);
    put_head(out, rows_text(r, 0, &risk.deployment_id), now_us);
    put_text(out, &text, tokens_estimate(text.data, text.len));
    risk_state_members(out, &state);
    buf_char(out, '}');
    return OK;
}

static struct context_lessons lessons_of(struct call *c, const struct rows *r, const struct context_in *in)
{
    const char *text = rows_text(r, 0, &view.lessons_text);
    if (!text || !field_is_true(in->lessons))
        return (struct context_lessons){ 0 };
    return (struct context_lessons){
        .text = reflect_note_segment(&c->arena, text),
        .note_id = rows_text(r, 0, &view.note_id),
        .scope = rows_text(r, 0, &view.note_scope),
        .hash = rows_text(r, 0, &view.lessons_hash),
    };
}

static enum err read_context(struct call *c, const struct rows *r, const struct context_in *in,
                             struct context *context)
{
    const struct session session = SESSION_OF(r, view);
    struct arena *arena = &c->arena;
    struct trade *closed, *open;
    context->risk = risk_of(arena, rows_text(r, 0, &view.rejections), &session, context->now_us);
    TRY(trade_rows_read(arena, rows_text(r, 0, &view.closed), &closed, &context->closed_count));
    TRY(trade_rows_read(arena, rows_text(r, 0, &view.open), &open, &context->open_count));
    context->closed = closed;
    context->open = open;
    context->lessons = lessons_of(c, r, in);
    return OK;
}

/* Appends the last section, within the tokens that the other sections left. */
static struct recall_shown put_recall(struct buf *text, const struct recall *recall, size_t room)
{
    const size_t between = text->len > 0;
    struct buf section = { .arena = text->arena };
    if (room <= between)
        return (struct recall_shown){ 0 };
    const size_t most = room - between < RECALL_TOKENS ? room - between : RECALL_TOKENS;
    struct recall_shown shown =
        recall_text(&section, recall->items, recall->count, &recall->evidence, recall->pending, most);
    if (!section.len)
        return shown;
    if (between)
        buf_char(text, '\n');
    buf_add(text, section.data, section.len);
    shown.tokens += between;
    return shown;
}

static void put_recall_members(struct buf *out, struct call *c, const struct recall *recall,
                               const struct recall_shown *shown)
{
    buf_json_key(out, "recall");
    if (!recall) {
        buf_text(out, "null");
        return;
    }
    buf_char(out, '{');
    recall_json(out, c, recall);
    buf_fmt(out, ",\"shown\":%zu}", shown->items);
}

/* The journal, as a section of the context. */
struct journal {
    struct state state;
    struct state_shown shown;
};

static size_t put_journal(struct buf *out, void *arg, size_t max_tokens)
{
    struct journal *j = arg;
    j->shown = state_text(out, &j->state, max_tokens < STATE_TOKENS ? max_tokens : STATE_TOKENS, true);
    return j->shown.tokens;
}

static enum err read_journal(struct call *c, const struct rows *r, struct journal *j)
{
    const struct state_columns columns = {
        .positions = rows_text(r, 0, &view.journal_positions),
        .theses = rows_text(r, 0, &view.journal_theses),
        .lessons = rows_text(r, 0, &view.journal_lessons),
    };
    TRY(state_read(&c->arena, &columns, &j->state));
    struct buf none = { .arena = &c->arena };
    j->shown = state_text(&none, &j->state, 0, true); /* what is left out if there is no room */
    return OK;
}

static void put_journal_members(struct buf *out, const struct journal *j)
{
    buf_json_key(out, "journal");
    buf_char(out, '{');
    json_put_int(out, "tokens", (int64_t)j->shown.tokens);
    state_members(out, &j->state, &j->shown);
    buf_char(out, '}');
}

/* `recall` is NULL if the request does not ask for past situations. */
static enum err reply_context(struct call *c, const struct rows *r, const struct recall *recall)
{
    const struct context_in *in = c->in;
    const bool enabled = row_bool(r, 0, &view.memory_enabled);
    struct journal journal = { .shown = { 0 } };
    const struct context_section section = { put_journal, &journal };
    struct context context = { .now_us = row_time_us(r, 0, &view.as_of, 0) };
    if (enabled)
        TRY(read_context(c, r, in, &context));
    if (enabled && field_is_true(in->journal)) {
        TRY(read_journal(c, r, &journal));
        context.journal = &section;
    }
    struct buf text = { .arena = &c->arena };
    buf_room(&text, USUAL_BYTES);
    struct context_shown shown = context_text(&text, &context, (size_t)in->max_tokens);
    struct recall_shown recalled = { 0 };
    if (recall)
        recalled = put_recall(&text, recall, (size_t)in->max_tokens - shown.tokens);
    if (wants_markdown(c))
        return reply_markdown(c, &text);
    struct buf *out = call_reply_json(c, 200);
    buf_room(out, 4 * USUAL_BYTES);
    put_head(out, rows_text(r, 0, &view.deployment_id), context.now_us);
    buf_json_key(out, "enabled");
    buf_json_bool(out, enabled);
    put_text(out, &text, shown.tokens + recalled.tokens);
    json_put_int(out, "max_tokens", in->max_tokens);
    buf_json_key(out, "lessons");
    context_lessons_json(out, &context, &shown);
    put_recall_members(out, c, recall, &recalled);
    context_members(out, &context, &shown);
    if (field_is_true(in->journal))
        put_journal_members(out, &journal);
    buf_char(out, '}');
    return OK;
}

/* A request with `recall` runs as a coroutine, so it may wait here. */
static enum err render_context(struct call *c, const struct rows *r)
{
    const struct context_in *in = c->in;
    struct recall recall;
    if (!in->recall || !row_bool(r, 0, &view.memory_enabled))
        return reply_context(c, r, NULL);
    TRY(recall_text_at(c, in->id, rows_time(r, 0, &view.as_of, &c->arena), in->recall, &recall));
    return reply_context(c, r, &recall);
}

static enum err render_snapshot_context(struct call *c, const struct rows *r)
{
    return reply_context(c, r, NULL);
}

static bool wants_journal(const struct call *c)
{
    const struct context_in *in = c->in;
    return field_is_true(in->journal);
}

/* ---- for others ---- */

enum err context_of_snapshot(struct call *c, const char *snapshot_id, struct buf *text, size_t *tokens)
{
    struct context_in in = {
        .id = snapshot_id,
        .as_of = LATEST,
        .lessons = "true",
        .k = FIELD_NO_INT,
        .max_tokens = CONTEXT_TOKENS,
        .window_us = RISK_WINDOW_US,
        .max_rejections = RISK_REJECTIONS_MAX,
    };
    struct rows *r;
    TRY(query_one(c, &snapshot_context, &in, NULL, &r));
    struct context context = { .now_us = row_time_us(r, 0, &view.as_of, 0) };
    if (row_bool(r, 0, &view.memory_enabled))
        TRY(read_context(c, r, &in, &context));
    *tokens = context_text(text, &context, CONTEXT_TOKENS).tokens;
    return OK;
}

#define IN(table) INPUT(table, struct context_in)

const struct route context_routes[] = {
    { GET, "/v1/deployments/{id}/risk_state", .prepare = set_window, .query = &risk_state_get,
      .render = render_risk_state, IN(risk_state_fields), .role = ROLE_READER },
    { GET, "/v1/deployments/{id}/context", .prepare = set_window, .query = &context_get,
      .query_if = wants_journal, .other_query = &context_journal_get, .render = render_context,
      IN(context_fields), .role = ROLE_READER, .models_with = "recall" },
    { GET, "/v1/decision_snapshots/{id}/context", .prepare = set_window, .query = &snapshot_context,
      .query_if = wants_journal, .other_query = &snapshot_context_journal, .render = render_snapshot_context,
      IN(snapshot_fields), .role = ROLE_READER },
    END_ROUTES,
};

/* The view before each decision: what an agent is shown of its own track record. */
#include "core/ledger/context.h"

#include <stdlib.h>

#include "core/base/time_text.h"
#include "core/base/tokens.h"
#include "core/ledger/json_put.h"
#include "core/reflect/reflect_note.h"
#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/ledger/trade_row.h"
#include "handlers/recall/recall.h"
#include "handlers/routes.h"

enum { USUAL_BYTES = 4096 }; /* of a context's text: room that need not grow */

struct context_in {
    const char *id, *as_of, *lessons, *recall;
    int64_t max_tokens, k;
};

/* clang-format off */
#define C(from, kind, member, ...) FIELD(from, kind, struct context_in, member, __VA_ARGS__)
#define ID     C(FROM_PATH, KIND_UUID, id, .required = true)
#define AS_OF  C(FROM_QUERY, KIND_TIME, as_of)
#define BUDGET C(FROM_QUERY, KIND_INT, max_tokens, .min = 1, .max = 20000, .fallback = "2000"), \
               C(FROM_QUERY, KIND_INT, k, .min = 0, .max = CONTEXT_TRADES_MAX), \
               C(FROM_QUERY, KIND_BOOL, lessons, .fallback = "true")

static const struct field risk_state_fields[] = { ID, AS_OF, END_FIELDS };
static const struct field context_fields[] = { ID, AS_OF, BUDGET, C(FROM_QUERY, KIND_TEXT, recall, .min = 1, .max = 2000), END_FIELDS };
static const struct field snapshot_fields[] = { ID, C(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST), BUDGET, END_FIELDS };
/* clang-format on */

/* ---- from the row ---- */

/* 0 where there is none. */
static int64_t time_us(struct call *c, const struct rows *r, const char *column)
{
    int64_t us = 0;
    if (rows_text(r, 0, column))
        (void)time_text_parse(rows_time(&c->arena, r, 0, column), &us);
    return us;
}

/* Cuts the text of the statement: the rules, the last one first. */
static const char **split(struct call *c, const char *text, size_t *count)
{
    *count = text != NULL;
    for (const char *p = text; p && *p; p++)
        *count += *p == '\x1f';
    const char **rules = arena_alloc(&c->arena, (*count + 1) * sizeof *rules);
    char *rest = text ? arena_text(&c->arena, text) : NULL;
    for (size_t i = 0; i < *count; i++)
        rules[i] = strsep(&rest, "\x1f");
    return rules;
}

static struct decimal number(const struct rows *r, const char *column)
{
    struct decimal value;
    (void)decimal_parse(rows_text(r, 0, column), &value);
    return value;
}

static struct risk_state risk_of(struct call *c, const struct rows *r, int64_t now_us)
{
    struct risk_state risk = { 0 };
    size_t count;
    const char **rules = split(c, rows_text(r, 0, "rejections"), &count);
    risk_state_add_rejections(&risk, &c->arena, rules, count);
    if (!rows_text(r, 0, "tick_at"))
        return risk;
    const struct session session = {
        .last_tick_us = time_us(c, r, "tick_at"),
        .day_start_equity = number(r, "day_start_equity_usd"),
        .realized_today = number(r, "realized_today_usd"),
        .executed_today = strtoll(rows_text(r, 0, "executed_today"), NULL, 10),
        .losing_closes = strtoll(rows_text(r, 0, "losing_closes"), NULL, 10),
    };
    risk_state_add_session(&risk, &session, now_us);
    return risk;
}

/* ---- answers ---- */

static void put_head(struct buf *out, const struct rows *r, int64_t now_us)
{
    buf_char(out, '{');
    json_put_text(out, "deployment_id", rows_text(r, 0, "deployment_id"));
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
    return reply_text(c, 200, "text/markdown; charset=utf-8", buf_string(text));
}

static enum err risk_state(struct call *c, const struct rows *r)
{
    int64_t now_us = time_us(c, r, "as_of");
    struct risk_state risk = risk_of(c, r, now_us);
    struct buf text = { .arena = &c->arena };
    risk_state_text(&text, &risk);
    if (wants_markdown(c))
        return reply_markdown(c, &text);
    struct buf *out = reply_json(c, 200);
    put_head(out, r, now_us);
    put_text(out, &text, tokens_estimate(text.data, text.len));
    risk_state_members(out, &risk);
    buf_char(out, '}');
    return OK;
}

static struct context_lessons lessons_of(struct call *c, const struct rows *r)
{
    const struct context_in *in = c->in;
    const char *text = rows_text(r, 0, "lessons_text");
    if (!text || in->lessons[0] == 'f')
        return (struct context_lessons){ 0 };
    return (struct context_lessons){
        .text = reflect_note_segment(&c->arena, text),
        .note_id = rows_text(r, 0, "note_id"),
        .scope = rows_text(r, 0, "note_scope"),
        .hash = rows_text(r, 0, "lessons_hash"),
    };
}

static enum err context_of(struct call *c, const struct rows *r, struct context *context)
{
    struct trade *closed, *open;
    context->risk = risk_of(c, r, context->now_us);
    TRY(trade_rows_read(c, rows_text(r, 0, "closed"), &closed, &context->closed_count));
    TRY(trade_rows_read(c, rows_text(r, 0, "open"), &open, &context->open_count));
    context->closed = closed;
    context->open = open;
    context->lessons = lessons_of(c, r);
    return OK;
}

/* The last section, in the room that the others have left. */
static struct recall_shown put_recall(struct buf *text, const struct recall *recall, size_t room)
{
    const size_t between = text->len > 0;
    struct buf section = { .arena = text->arena };
    if (room <= between)
        return (struct recall_shown){ 0 };
    const size_t most = room - between < RECALL_TOKENS ? room - between : RECALL_TOKENS;
    struct recall_shown shown = recall_text(&section, recall->items, recall->count, &recall->evidence, most);
    if (!shown.items)
        return shown;
    if (between)
        buf_char(text, '\n');
    buf_add(text, section.data, section.len);
    shown.tokens += between;
    return shown;
}

static void put_recalled(struct buf *out, struct call *c, const struct recall *recall,
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

/* `recall`: what was found of past situations; NULL: nothing was asked for. */
static enum err render(struct call *c, const struct rows *r, const struct recall *recall)
{
    const struct context_in *in = c->in;
    bool enabled = rows_text(r, 0, "memory_enabled")[0] == 't';
    struct context context = { .now_us = time_us(c, r, "as_of") };
    if (enabled)
        TRY(context_of(c, r, &context));
    struct buf text = { .arena = &c->arena };
    buf_room(&text, USUAL_BYTES);
    struct context_shown shown = context_text(&text, &context, (size_t)in->max_tokens);
    struct recall_shown recalled = { 0 };
    if (recall)
        recalled = put_recall(&text, recall, (size_t)in->max_tokens - shown.tokens);
    if (wants_markdown(c))
        return reply_markdown(c, &text);
    struct buf *out = reply_json(c, 200);
    buf_room(out, 4 * USUAL_BYTES);
    put_head(out, r, context.now_us);
    buf_json_key(out, "enabled");
    buf_json_bool(out, enabled);
    put_text(out, &text, shown.tokens + recalled.tokens);
    json_put_int(out, "max_tokens", in->max_tokens);
    buf_json_key(out, "lessons");
    context_lessons_json(out, &context, &shown);
    put_recalled(out, c, recall, &recalled);
    context_members(out, &context, &shown);
    buf_char(out, '}');
    return OK;
}

static enum err risk_state_get(struct call *c)
{
    return db_render(c, &RISK_STATE_GET, risk_state);
}

static enum err context(struct call *c, const struct rows *r)
{
    return render(c, r, NULL);
}

static enum err context_with_recall(struct call *c)
{
    const struct context_in *in = c->in;
    struct recall recall;
    struct rows *r;
    TRY(db_one(c, &CONTEXT_GET, &r));
    if (rows_text(r, 0, "memory_enabled")[0] != 't')
        return context(c, r);
    TRY(recall_text_at(c, in->id, rows_time(&c->arena, r, 0, "as_of"), in->recall, &recall));
    return render(c, r, &recall);
}

static enum err context_get(struct call *c)
{
    const struct context_in *in = c->in;
    return in->recall ? context_with_recall(c) : db_render(c, &CONTEXT_GET, context);
}

static enum err snapshot_context(struct call *c)
{
    return db_render(c, &DECISION_SNAPSHOT_CONTEXT, context);
}

#define IN(table) .fields = table, .in_size = sizeof(struct context_in)

const struct route context_routes[] = {
    { GET, "/v1/deployments/{id}/risk_state", risk_state_get, IN(risk_state_fields), .role = ROLE_READER },
    { GET, "/v1/deployments/{id}/context", context_get, IN(context_fields), .role = ROLE_READER,
      .models_with = "recall" },
    { GET, "/v1/decision_snapshots/{id}/context", snapshot_context, IN(snapshot_fields),
      .role = ROLE_READER },
    END_ROUTES,
};

/* Recall: finds the past situations most similar to a given one, with the outcomes of their trades. */
#include "handlers/recall/recall.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/time_text.h"
#include "core/base/vector.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/backfill.h"
#include "server/dispatch/query.h"
#include "server/embedder.h"

#define DEFAULT_K              5
#define DEFAULT_MIN_SIMILARITY "0.3"

enum {
    COMPARED_MAX = 20000,
    WORD_MATCHES_MAX = 2000, /* summaries compared by words if there is no embedder: 30 µs each */
    POSITIONS_MAX = 200,
};

struct open_position_in {
    const char *symbol, *side;
};

struct situation_in {
    const char *symbol, *side, *regime, *reason, *size_usd, *leverage, *at, *day_pnl_pct;
    int64_t losing_closes;
    struct objects open_positions; /* of struct open_position_in */
};

struct recall_in {
    const char *id, *text, *scope, *symbol, *side, *regime, *as_of, *min_similarity;
    struct situation_in *situation;
    int64_t k, max_tokens;
};

/* clang-format off */
static const char *const scope_names[] = { "deployment", "skill", NULL };

#define SYMBOL .min = 1, .max = 64
#define O(kind, member, ...) FIELD(FROM_BODY, kind, struct open_position_in, member, __VA_ARGS__)
static const struct field position_fields[] = {
    O(KIND_LINE, symbol, .required = true, SYMBOL),
    O(KIND_CHOICE, side, .required = true, .choices = trade_side_names),
    END_FIELDS,
};
#define S(kind, member, ...) FIELD(FROM_BODY, kind, struct situation_in, member, __VA_ARGS__)
static const struct field situation_fields[] = {
    S(KIND_LINE, symbol, .required = true, SYMBOL),
    S(KIND_CHOICE, side, .choices = trade_side_names),
    S(KIND_LINE, regime, .min = 1, .max = 64),
    S(KIND_TEXT, reason, .min = 1, .max = 2000),
    S(KIND_NUMBER, size_usd, .min = 0, .max = -1),
    S(KIND_NUMBER, leverage, .min = 0, .max = -1),
    S(KIND_TIME, at),
    S(KIND_INT, losing_closes, .min = 0, .max = 1000000),
    S(KIND_NUMBER, day_pnl_pct),
    S(KIND_OBJECTS, open_positions, .max = POSITIONS_MAX, SUB(position_fields, struct open_position_in)),
    END_FIELDS,
};
#define R(from, kind, member, ...) FIELD(from, kind, struct recall_in, member, __VA_ARGS__)
static const struct field recall_fields[] = {
    FIELD_ID(struct recall_in),
    R(FROM_BODY, KIND_TEXT, text, .min = 1, .max = 2000),
    R(FROM_BODY, KIND_OBJECT, situation, SUB(situation_fields, struct situation_in)),
    R(FROM_BODY, KIND_INT, k, .min = 1, .max = 50, .fallback = TEXT_OF(DEFAULT_K)),
    R(FROM_BODY, KIND_CHOICE, scope, .choices = scope_names, .fallback = "deployment"),
    R(FROM_BODY, KIND_LINE, symbol, SYMBOL),
    R(FROM_BODY, KIND_CHOICE, side, .choices = trade_side_names),
    R(FROM_BODY, KIND_LINE, regime, .min = 1, .max = 64),
    R(FROM_BODY, KIND_INT, max_tokens, .min = 50, .max = 4000, .fallback = "500"),
    R(FROM_BODY, KIND_TIME, as_of),
    R(FROM_BODY, KIND_NUMBER, min_similarity, .min = 0, .max = 1, .fallback = DEFAULT_MIN_SIMILARITY),
    END_FIELDS,
};

/* Parameters of the statements, including those of the scope. */
#define P(kind, member) FIELD(COMPUTED, kind, struct recall, member)
#define OF(what, member) { .name = #member, .from = COMPUTED, .kind = (what), .offset = offsetof(struct recall, scope.member) }
static const struct field run_fields[] = {
    OF(KIND_UUID, id), OF(KIND_LINE, skill_id), OF(KIND_LINE, version),
    P(KIND_TIME, as_of), P(KIND_LINE, symbol), P(KIND_CHOICE, side), P(KIND_LINE, regime), P(KIND_NUMBER, min_similarity),
    P(KIND_INT, k),
    P(KIND_TEXT, query_text), P(KIND_TEXT, query_vector), P(KIND_LINE, query_model), P(KIND_INT, query_dim),
    P(KIND_INT, max_compared), P(KIND_INT, max_word_matches),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(deployment, skill_id, version, as_of, memory_enabled);
COLUMNS(past, trade_id, similarity, symbol, side, entry_tick_at, exit_tick_at, summary, realized_pnl_usd,
        fees_usd, entry_size_usd, holding_minutes, exit_reason, regime, compared, pending, outdated);
QUERY(recall_deployment, RECALL_DEPLOYMENT, recall_fields, READS(deployment), .missing = "deployment {id}");
QUERY(recall_deployment_of, RECALL_DEPLOYMENT, run_fields, READS(deployment), .missing = "deployment {id}");
QUERY(by_vector_deployment, RECALL_BY_VECTOR_DEPLOYMENT, run_fields, READS(past));
QUERY(by_vector_skill, RECALL_BY_VECTOR_SKILL, run_fields, READS(past));
QUERY(by_words_deployment, RECALL_BY_WORDS_DEPLOYMENT, run_fields, READS(past));
QUERY(by_words_skill, RECALL_BY_WORDS_SKILL, run_fields, READS(past));

/* ---- the request ---- */

static enum err check(struct call *c, const struct recall_in *in)
{
    if (!in->text && !in->situation)
        return problem_field(&c->problem, "text", FAULT_REQUIRED, "a recall needs a text or a situation");
    if (in->text && in->situation)
        return problem_field(&c->problem, "text", FAULT_NOT_TOGETHER,
                             "cannot be given together with a situation");
    return OK;
}

/* A number that is too large to compute with counts as unknown. */
static struct quantity quantity(const char *number)
{
    struct quantity q = { 0 };
    if (number)
        (void)quantity_read(number, &q);
    return q;
}

/* The situation as the summary of a trade that was opened in it. */
static const char *summarize(struct call *c, const struct situation_in *in)
{
    const struct open_position_in *open = in->open_positions.items;
    const size_t count = in->open_positions.count;
    struct situation_position *others = arena_alloc(&c->arena, (count + 1) * sizeof *others);
    struct situation s = {
        .symbol = in->symbol,
        .side = in->side,
        .regime = in->regime,
        .reason = in->reason,
        .size_usd = quantity(in->size_usd),
        .leverage = quantity(in->leverage),
        .losing_closes = in->losing_closes == FIELD_NO_INT ? 0 : in->losing_closes,
        .day_pnl_pct = quantity(in->day_pnl_pct).value,
        .others = others,
        .other_count = count,
    };
    for (size_t i = 0; i < count; i++)
        others[i] = (struct situation_position){ open[i].symbol, open[i].side };
    s.has_time = in->at && time_text_parse(in->at, &s.at_us);
    struct buf text = { .arena = &c->arena };
    situation_text(&text, &s);
    return buf_string(&text);
}

/* ---- the search ---- */

static enum err embed_query(struct call *c, struct recall *r)
{
    const struct embedder_space own = embedder_space(c->loop);
    float *v = arena_alloc(&c->arena, own.dim * sizeof *v);
    struct buf out = { .arena = &c->arena };
    r->query_model = own.model;
    r->query_dim = (int64_t)own.dim;
    TRY(embedder_embed_one(&c->task, r->query_text, v));
    vector_array(&out, v, own.dim);
    r->query_vector = buf_string(&out);
    return OK;
}

static enum err find(struct call *c, struct recall *r, struct rows **rows)
{
    static const struct query *const queries[2][2] = {
        { &by_words_deployment, &by_words_skill },
        { &by_vector_deployment, &by_vector_skill },
    };
    r->max_compared = COMPARED_MAX;
    r->max_word_matches = WORD_MATCHES_MAX;
    return query_rows(c, queries[!r->degraded][r->scope.skill], r, NULL, rows);
}

static int64_t millionths(const char *text)
{
    char digits[DECIMAL_TEXT_SIZE];
    struct quantity q = quantity(text);
    decimal_fixed(decimal_times(q.value, 1000000), 0, digits);
    return strtoll(digits, NULL, 10);
}

static struct situation_outcome outcome_of(const struct rows *r, int row)
{
    struct situation_outcome o =
        situation_outcome_of(row_decimal(r, row, &past.realized_pnl_usd), row_decimal(r, row, &past.fees_usd),
                             row_decimal(r, row, &past.entry_size_usd));
    o.holding_minutes = row_decimal(r, row, &past.holding_minutes);
    o.exit_reason = rows_text(r, row, &past.exit_reason);
    return o;
}

/* If nothing was found, the one row has counts and no trade. */
static void take_items(struct call *c, struct recall *r, const struct rows *rows)
{
    r->rows = rows;
    r->items = arena_zero(&c->arena, (size_t)(rows_count(rows) + 1) * sizeof *r->items);
    for (int row = 0; row < rows_count(rows); row++) {
        if (!rows_text(rows, row, &past.trade_id))
            continue;
        struct recall_item *item = &r->items[r->count++];
        item->similarity = millionths(rows_text(rows, row, &past.similarity));
        item->summary = rows_text(rows, row, &past.summary);
        item->outcome = outcome_of(rows, row);
        item->entry_us = row_time_us(rows, row, &past.entry_tick_at, 0);
    }
    r->evidence = recall_weigh(r->items, r->count, millionths(r->min_similarity));
}

/* A search by words needs no vectors, so it leaves nothing out. */
static void note_pending(struct call *c, struct recall *r)
{
    if (r->degraded || !rows_count(r->rows))
        return;
    r->pending = row_int(r->rows, 0, &past.pending, 0);
    if (!r->pending)
        return;
    c->reply.no_store = true;
    backfill_ask(&(struct backfill_situations){ .owner = c->owner,
                                                .skill_id = r->scope.skill_id,
                                                .version = r->scope.version,
                                                .deployment_id = r->scope.skill ? NULL : r->scope.id });
}

static enum err run(struct call *c, struct recall *r)
{
    struct rows *rows;
    enum err err = embed_query(c, r);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        r->degraded = "embedder_unavailable";
    else
        TRY(err);
    TRY(find(c, r, &rows));
    take_items(c, r, rows);
    note_pending(c, r);
    return OK;
}

enum err recall_text_at(struct call *c, const char *deployment_id, const char *as_of, const char *text,
                        struct recall *r)
{
    struct rows *d;
    *r = (struct recall){ .scope.id = deployment_id,
                          .as_of = as_of,
                          .query_text = text,
                          .min_similarity = DEFAULT_MIN_SIMILARITY,
                          .k = DEFAULT_K };
    TRY(query_one(c, &recall_deployment_of, r, NULL, &d)); /* it may have been deleted in the meantime */
    r->scope.skill_id = rows_text(d, 0, &deployment.skill_id);
    r->scope.version = rows_text(d, 0, &deployment.version);
    return run(c, r);
}

/* ---- the response ---- */

static void put_similarity(struct buf *out, int64_t millionth)
{
    buf_json_key(out, "similarity");
    buf_fmt(out, "%" PRId64 ".%06" PRId64, millionth / 1000000, millionth % 1000000);
}

static void put_item(struct buf *out, struct call *c, const struct recall *r, size_t i)
{
    const struct situation_outcome *o = &r->items[i].outcome;
    const int row = (int)i;
    buf_char(out, '{');
    json_put_text(out, "trade_id", rows_text(r->rows, row, &past.trade_id));
    put_similarity(out, r->items[i].similarity);
    json_put_text(out, "symbol", rows_text(r->rows, row, &past.symbol));
    json_put_text(out, "side", rows_text(r->rows, row, &past.side));
    json_put_text(out, "entry_tick_at", rows_time(r->rows, row, &past.entry_tick_at, &c->arena));
    json_put_text(out, "exit_tick_at", rows_time(r->rows, row, &past.exit_tick_at, &c->arena));
    json_put_text(out, "summary", rows_text(r->rows, row, &past.summary));
    json_put_decimal(out, "net_usd", o->net_usd);
    json_put_decimal(out, "return_pct", decimal_round(o->return_pct, 4));
    json_put_decimal(out, "holding_minutes", o->holding_minutes);
    json_put_text(out, "exit_reason", rows_text(r->rows, row, &past.exit_reason));
    json_put_text(out, "regime", rows_text(r->rows, row, &past.regime));
    buf_char(out, '}');
}

static void put_number(struct buf *out, const char *name, bool known, double value)
{
    buf_json_key(out, name);
    if (known)
        buf_fmt(out, "%.4f", value);
    else
        buf_text(out, "null");
}

/* A count of the statement; 0 if the memory is disabled and no statement ran. */
static void put_count(struct buf *out, const struct recall *r, const char *name, const struct column *count)
{
    json_put_raw(out, name, r->rows && rows_count(r->rows) ? rows_text(r->rows, 0, count) : "0");
}

void recall_json(struct buf *out, struct call *c, const struct recall *r)
{
    json_put_text(out, "query", r->query_text);
    json_put_text(out, "model", r->degraded ? NULL : r->query_model);
    put_count(out, r, "compared", &past.compared);
    put_count(out, r, "pending", &past.pending);
    put_count(out, r, "outdated", &past.outdated);
    json_put_text(out, "degraded", r->degraded);
    buf_json_key(out, "items");
    buf_char(out, '[');
    for (size_t i = 0; i < r->count; i++) {
        if (i)
            buf_char(out, ',');
        put_item(out, c, r, i);
    }
    buf_char(out, ']');
    put_number(out, "effective_sample_size", true, r->evidence.effective_sample_size);
    put_number(out, "win_rate", r->evidence.weighed, r->evidence.win_rate);
    put_number(out, "mean_return_pct", r->evidence.has_return, r->evidence.mean_return_pct);
}

static void put_response(struct call *c, const struct recall_in *in, const struct recall *r, bool enabled)
{
    struct buf text = { .arena = &c->arena }, *out = call_reply_json(c, 200);
    const struct recall_shown shown =
        recall_text(&text, r->items, r->count, &r->evidence, r->pending, (size_t)in->max_tokens);
    buf_char(out, '{');
    json_put_text(out, "deployment_id", in->id);
    json_put_text(out, "as_of", r->as_of);
    json_put_bool(out, "enabled", enabled);
    recall_json(out, c, r);
    json_put_int(out, "shown", (int64_t)shown.items);
    buf_json_key(out, "markdown");
    buf_json_text(out, text.data ? text.data : "", text.len);
    json_put_int(out, "tokens", (int64_t)shown.tokens);
    buf_char(out, '}');
}

static enum err recall_post(struct call *c)
{
    const struct recall_in *in = c->in;
    struct rows *d;
    TRY(check(c, in));
    TRY(query_one(c, &recall_deployment, in, NULL, &d));
    struct recall r = {
        .scope = { in->id, rows_text(d, 0, &deployment.skill_id), rows_text(d, 0, &deployment.version),
                   strcmp(in->scope, "skill") == 0 },
        .as_of = rows_time(d, 0, &deployment.as_of, &c->arena),
        .query_text = in->text ? in->text : summarize(c, in->situation),
        .symbol = in->symbol,
        .side = in->side,
        .regime = in->regime,
        .min_similarity = in->min_similarity,
        .k = in->k,
        .query_model = embedder_space(c->loop).model,
    };
    const bool enabled = row_bool(d, 0, &deployment.memory_enabled);
    if (enabled)
        TRY(run(c, &r));
    put_response(c, in, &r, enabled);
    return OK;
}

const struct route recall_routes[] = {
    { POST, "/v1/deployments/{id}/recall", recall_post, INPUT(recall_fields, struct recall_in),
      .role = ROLE_READER, .waits = true, .safe = true, .models = true },
    END_ROUTES,
};

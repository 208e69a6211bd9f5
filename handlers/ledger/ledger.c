/* The ledger of one deployment: loaded, changed by ticks in memory, and stored in one statement. */
#include "handlers/ledger/ledger.h"

#include <string.h>

#include "core/base/time_text.h"
#include "core/base/json_put.h"
#include "core/ledger/trade_members.h"
#include "core/ledger/situation.h"
#include "core/ledger/tick_actions.h"
#include "handlers/ledger/trade_rows.h"
#include "server/dispatch/query.h"
#include "server/id.h"

struct ledger_params {
    const char *id, *tick_at, *snapshot_id, *skill_id, *version, *day_start_equity_usd, *realized_today_usd;
    const char *before_at, *snapshots, *changed, *opened;
    int64_t expected, count, executed_today, losing_closes, closed, actions, before_n;
};

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct ledger_params, member)
static const struct field param_fields[] = {
    P(KIND_UUID, id), P(KIND_TIME, tick_at), P(KIND_UUID, snapshot_id), P(KIND_LINE, skill_id), P(KIND_LINE, version),
    P(KIND_NUMBER, day_start_equity_usd), P(KIND_NUMBER, realized_today_usd), P(KIND_TEXT, snapshots), P(KIND_TEXT, changed),
    P(KIND_TEXT, opened), P(KIND_INT, expected), P(KIND_INT, count), P(KIND_INT, executed_today), P(KIND_INT, losing_closes),
    P(KIND_INT, closed), P(KIND_INT, actions), P(KIND_TIME, before_at), P(KIND_INT, before_n),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(state, skill_id, version, memory_enabled, reflection_cadence, every_n_trades, ticks, last_tick_at,
        last_tick_n, day_start_equity_usd, executed_today, realized_today_usd, losing_closes,
        closed_since_reflection, reflected_at, lessons_hash, lessons_until, open);
COLUMNS(written, snapshot_id, warnings);
COLUMNS(stored_tick, id, content_hash, ops, open, unmatched_fees, reflection_due, warnings);
QUERY(tick_state, TICK_STATE, param_fields, READS(state), .missing = "deployment {id}");
QUERY(tick_stored, TICK_STORED, param_fields, READS(stored_tick));
QUERY(tick_write, TICK_WRITE, param_fields, READS(written));

static const char *text_of(struct arena *arena, struct decimal d)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(d, text);
    return arena_text(arena, text);
}

/* ---- loading ---- */

enum err ledger_load(struct call *c, struct arena *arena, const char *deployment_id, const char *tick_at,
                     struct ledger *l)
{
    const struct ledger_params params = { .id = deployment_id, .tick_at = tick_at };
    struct rows *r;
    TRY(query_one(c, &tick_state, &params, arena, &r));
    *l = (struct ledger){
        .c = c,
        .arena = arena,
        .id = deployment_id,
        .skill_id = rows_text(r, 0, &state.skill_id),
        .version = rows_text(r, 0, &state.version),
        .cadence = cadence_in_force(rows_text(r, 0, &state.reflection_cadence),
                                    row_bool(r, 0, &state.memory_enabled)),
        .lessons_hash = rows_text(r, 0, &state.lessons_hash),
        .every_n_trades = row_int(r, 0, &state.every_n_trades, 0),
        .ticks = row_int(r, 0, &state.ticks, 0),
        .base_tick_us = row_time_us(r, 0, &state.last_tick_at, MATERIALIZE_NO_TICK),
        .base_tick_at =
            rows_text(r, 0, &state.last_tick_at) ? rows_time(r, 0, &state.last_tick_at, arena) : NULL,
        .base_tick_n = row_int(r, 0, &state.last_tick_n, 0),
        .note_us = row_time_us(r, 0, &state.reflected_at, MATERIALIZE_NO_TICK),
        .lessons_until_us = row_time_us(r, 0, &state.lessons_until, INT64_MAX),
        .session = { .day_start_equity = row_decimal(r, 0, &state.day_start_equity_usd),
                     .realized_today = row_decimal(r, 0, &state.realized_today_usd),
                     .executed_today = row_int(r, 0, &state.executed_today, 0),
                     .losing_closes = row_int(r, 0, &state.losing_closes, 0) },
        .closed_since_reflection = row_int(r, 0, &state.closed_since_reflection, 0),
        .snapshots.arena = arena,
        .changed.arena = arena,
        .opened.arena = arena,
    };
    l->session.last_tick_us = l->base_tick_us;
    return trade_rows_read(arena, rows_text(r, 0, &state.open), &l->open, &l->open_count);
}

/* ---- reflection ---- */

static bool is_reflection_due(const struct ledger *l, int64_t closes)
{
    const struct cadence_state s = {
        .cadence = l->cadence,
        .every_n_trades = l->every_n_trades,
        .closed = l->closed_since_reflection + closes,
        .closed_before = l->closed_since_reflection,
        .now_us = l->session.last_tick_us,
        .has_note = l->note_us != MATERIALIZE_NO_TICK,
        .note_us = l->note_us,
    };
    return !cadence_decide(l->arena, &s).reason;
}

/* ---- rows and responses as JSON ---- */

static void put_record(struct buf *list, const struct trade *t, bool closed, bool new, int64_t tick_us)
{
    unsigned forms = FORM_STORE | (new ? FORM_STORE_ENTRY : 0u) | (closed ? FORM_STORE_EXIT : 0u);
    buf_text(list, list->len ? ",{" : "{");
    json_put_text(list, "status", closed ? "closed" : "open");
    json_put_time(list, "last_tick_at", tick_us);
    trade_members_json(list, forms, &(struct trade_source){ .trade = t });
    buf_char(list, '}');
}

/* An existing row is updated, a new one is inserted. */
static void add_trade(struct ledger *l, const struct trade *t, bool closed, int64_t tick_us)
{
    bool new = t->entry_tick_us > l->base_tick_us;
    put_record(new ? &l->opened : &l->changed, t, closed, new, tick_us);
}

void ledger_response_json(struct buf *out, const struct tick_response *a)
{
    buf_char(out, '{');
    json_put_text(out, "snapshot_id", a->snapshot_id);
    json_put_raw(out, "ops", a->ops);
    json_put_raw(out, "open", a->open);
    json_put_raw(out, "unmatched_fees", a->unmatched_fees);
    json_put_raw(out, "warnings", a->warnings ? a->warnings : "[]");
    json_put_bool(out, "reflection_due", a->reflection_due);
    json_put_bool(out, "replayed", a->replayed);
    buf_char(out, '}');
}

/* `actions`: JSON for the journal, not a column. NULL: none. */
static void add_snapshot(struct ledger *l, const struct tick_in *in, const struct tick *tick,
                         const struct tick_response *a, const char *actions)
{
    struct buf *out = &l->snapshots;
    struct buf input = { .arena = out->arena };
    tick_body_json(&input, in);
    buf_text(out, out->len ? ",{" : "{");
    json_put_text(out, "id", a->snapshot_id);
    json_put_time(out, "tick_at", tick->tick_us);
    json_put_raw(out, "equity_usd", in->portfolio->equity_usd);
    json_put_text(out, "action_kind", tick->intent.kind);
    json_put_text(out, "engine_kind", tick->intent.engine_kind);
    json_put_text(out, "engine_rule", tick->intent.engine_rule);
    json_put_raw(out, "input", buf_string(&input));
    json_put_text(out, "content_hash", tick_body_hash(out->arena, in, tick));
    json_put_raw(out, "ops", a->ops);
    json_put_raw(out, "open", a->open);
    json_put_raw(out, "unmatched_fees", a->unmatched_fees);
    json_put_bool(out, "reflection_due", a->reflection_due);
    json_put_decimal(out, "day_start_equity_usd", l->session.day_start_equity);
    json_put_int(out, "executed_today", l->session.executed_today);
    json_put_decimal(out, "realized_today_usd", l->session.realized_today);
    json_put_int(out, "losing_closes", l->session.losing_closes);
    if (actions)
        json_put_raw(out, "actions", actions);
    buf_char(out, '}');
}

/* ---- applying ---- */

/* Completes new trades. Returns the number of closed trades. */
static int64_t complete_ops(struct ledger *l, const struct tick_in *in, struct materialized *m)
{
    int64_t closes = 0;
    tick_body_complete(l->arena, in, l->lessons_hash, m);
    for (size_t i = 0; i < m->op_count; i++) {
        closes += m->ops[i].kind == TRADE_CLOSE;
        if (m->ops[i].kind == TRADE_OPEN)
            m->ops[i].trade.id = id_new(l->arena);
    }
    return closes;
}

static enum err materialize_tick(struct ledger *l, const struct tick_in *in, struct tick *tick,
                                 struct materialized *m)
{
    struct decimal equity;
    TRY(tick_body_build(l->c, l->arena, in, "", tick));
    tick->snapshot_id = id_new(l->arena);
    enum materialize_status status =
        materialize(l->arena, l->open, l->open_count, tick, l->session.last_tick_us, m);
    if (status != MATERIALIZED)
        return tick_body_problem(l->c, status, m->symbol, "");
    (void)decimal_parse(in->portfolio->equity_usd, &equity);
    if (!session_count(&l->session, tick, m, equity))
        return tick_body_problem(l->c, MATERIALIZE_TOO_LARGE, "the PnL of today", "");
    return OK;
}

static const char *actions_of(struct ledger *l, const struct tick *tick, const struct materialized *m)
{
    struct buf json = { .arena = l->arena };
    const size_t count = tick_actions_json(&json, l->open, l->open_count, tick, m);
    l->actions += (int64_t)count;
    return count ? buf_string(&json) : NULL;
}

static void put_results(struct ledger *l, const struct materialized *m, struct tick_response *out)
{
    struct buf ops = { .arena = l->arena }, open = ops, fees = ops;
    trade_rows_ops_json(&ops, m);
    trade_rows_json(&open, l->open, l->open_count);
    trade_rows_fees_json(&fees, m);
    out->ops = buf_string(&ops);
    out->open = buf_string(&open);
    out->unmatched_fees = buf_string(&fees);
}

enum err ledger_apply(struct ledger *l, const struct tick_in *in, struct tick_response *out)
{
    struct arena *arena = l->arena;
    struct tick tick;
    struct materialized m;
    TRY(materialize_tick(l, in, &tick, &m));
    const int64_t closes = complete_ops(l, in, &m);
    const char *actions = actions_of(l, &tick, &m);
    l->open = materialize_open_rows(arena, &m, &l->open_count);
    situation_describe_opened(arena, l->open, l->open_count, &l->session);
    l->reflection_due = is_reflection_due(l, closes);
    *out = (struct tick_response){ .snapshot_id = tick.snapshot_id, .reflection_due = l->reflection_due };
    put_results(l, &m, out);
    add_snapshot(l, in, &tick, out, actions);
    for (size_t i = 0; i < m.op_count; i++)
        if (m.ops[i].kind == TRADE_CLOSE)
            add_trade(l, &m.ops[i].trade, true, tick.tick_us);
    l->last_snapshot_id = tick.snapshot_id;
    l->closed_since_reflection += closes;
    l->closed += closes;
    l->applied++;
    return OK;
}

/* ---- storing ---- */

static const char *bracketed(struct buf *list)
{
    return arena_fmt(list->arena, "[%s]", buf_string(list));
}

/* There is a row for each tick that left events, in the order of the ticks, or one without a snapshot. */
static void take_events(struct ledger *l, const struct rows *r, struct tick_response *responses)
{
    int row = 0;
    for (int64_t i = 0; i < l->applied && row < rows_count(r); i++) {
        const char *id = rows_text(r, row, &written.snapshot_id);
        if (!id || strcmp(id, responses[i].snapshot_id) != 0)
            continue;
        responses[i].warnings = rows_text(r, row++, &written.warnings);
        l->c->left_unsealed = true;
    }
}

enum err ledger_store(struct ledger *l, struct tick_response *responses, bool *stored)
{
    struct arena *arena = l->arena;
    for (size_t i = 0; i < l->open_count; i++)
        add_trade(l, &l->open[i], false, l->session.last_tick_us);
    const struct ledger_params params = {
        .id = l->id,
        .tick_at = time_text(arena, l->session.last_tick_us),
        .snapshot_id = l->last_snapshot_id,
        .skill_id = l->skill_id,
        .version = l->version,
        .day_start_equity_usd = text_of(arena, l->session.day_start_equity),
        .realized_today_usd = text_of(arena, l->session.realized_today),
        .snapshots = bracketed(&l->snapshots),
        .changed = bracketed(&l->changed),
        .opened = bracketed(&l->opened),
        .expected = l->ticks,
        .count = l->applied,
        .executed_today = l->session.executed_today,
        .losing_closes = l->session.losing_closes,
        .closed = l->closed,
        .actions = l->actions,
        .before_at = l->base_tick_at,
        .before_n = l->base_tick_n,
    };
    struct rows *r;
    TRY(query_rows(l->c, &tick_write, &params, arena, &r));
    *stored = rows_count(r) > 0;
    l->c->left_pending |= *stored && l->opened.len;
    take_events(l, r, responses);
    return OK;
}

/* ---- retries ---- */

enum err ledger_replay(const struct ledger *l, const struct tick_in *in, struct tick_response *out)
{
    struct call *c = l->c;
    const struct ledger_params params = { .id = l->id, .tick_at = in->tick_at };
    struct tick tick;
    struct rows *r;
    TRY(tick_body_build(c, l->arena, in, "", &tick));
    TRY(query_rows(c, &tick_stored, &params, l->arena, &r));
    if (rows_count(r) == 0)
        return tick_body_out_of_order(c, "the last tick of this deployment", l->session.last_tick_us,
                                      tick.tick_us);
    const char *id = rows_text(r, 0, &stored_tick.id);
    if (strcmp(tick_body_hash(l->arena, in, &tick), rows_text(r, 0, &stored_tick.content_hash)) != 0)
        return problem_set(&c->problem, ERR_TICK_CONFLICT,
                           "the tick of %s is stored as snapshot %s with another content", in->tick_at, id);
    *out = (struct tick_response){
        .snapshot_id = id,
        .ops = rows_text(r, 0, &stored_tick.ops),
        .open = rows_text(r, 0, &stored_tick.open),
        .unmatched_fees = rows_text(r, 0, &stored_tick.unmatched_fees),
        .warnings = rows_text(r, 0, &stored_tick.warnings),
        .reflection_due = row_bool(r, 0, &stored_tick.reflection_due),
        .replayed = true,
    };
    return OK;
}

/* The ledger of one deployment while ticks are applied to it: read, changed in memory, stored at once. */
#include "handlers/ledger/ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/time_text.h"
#include "core/ledger/json_put.h"
#include "core/ledger/situation.h"
#include "core/reflect/cadence.h"
#include "db/db.h"
#include "handlers/ledger/trade_row.h"
#include "handlers/recall/situation.h"
#include "server/id.h"

/* What the statements take beside the owner. */
struct ledger_params {
    const char *id, *tick_at, *snapshot_id, *skill_id, *version, *day_start_equity_usd, *realized_today_usd;
    const char *snapshots, *changed, *begun;
    int64_t expected, count, executed_today, losing_closes, closed;
};

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct ledger_params, member)
static const struct field param_fields[] = {
    P(KIND_UUID, id), P(KIND_TIME, tick_at), P(KIND_UUID, snapshot_id), P(KIND_LINE, skill_id), P(KIND_LINE, version),
    P(KIND_NUMBER, day_start_equity_usd), P(KIND_NUMBER, realized_today_usd), P(KIND_TEXT, snapshots), P(KIND_TEXT, changed),
    P(KIND_TEXT, begun), P(KIND_INT, expected), P(KIND_INT, count), P(KIND_INT, executed_today), P(KIND_INT, losing_closes),
    P(KIND_INT, closed),
    END_FIELDS,
};
/* clang-format on */

static const char *time_of(struct arena *arena, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_full(us, text);
    return arena_text(arena, text);
}

static const char *text_of(struct arena *arena, struct decimal d)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(d, text);
    return arena_text(arena, text);
}

/* ---- reading ---- */

static int64_t int_column(const struct rows *r, const char *name)
{
    return strtoll(rows_text(r, 0, name), NULL, 10);
}

static int64_t time_column(struct call *c, const struct rows *r, const char *name)
{
    int64_t us = MATERIALIZE_NO_TICK;
    if (rows_text(r, 0, name))
        (void)time_text_parse(rows_time(&c->arena, r, 0, name), &us);
    return us;
}

static struct decimal decimal_column(const struct rows *r, const char *name)
{
    struct decimal d = decimal_from_int(0);
    const char *text = rows_text(r, 0, name);
    if (text)
        (void)decimal_parse(text, &d);
    return d;
}

enum err ledger_load(struct call *c, const char *deployment_id, const char *tick_at, struct ledger *l)
{
    struct ledger_params params = { .id = deployment_id, .tick_at = tick_at };
    struct rows *r;
    TRY(db_rows_from(c, &TICK_STATE, param_fields, &params, &r));
    if (rows_count(r) == 0)
        return ERR_NOT_FOUND;
    *l = (struct ledger){
        .c = c,
        .id = deployment_id,
        .skill_id = rows_text(r, 0, "skill_id"),
        .version = rows_text(r, 0, "version"),
        .cadence = cadence_find(rows_text(r, 0, "reflection_cadence")),
        .lessons_hash = rows_text(r, 0, "lessons_hash"),
        .every_n_trades = int_column(r, "every_n_trades"),
        .ticks = int_column(r, "ticks"),
        .base_tick_us = time_column(c, r, "last_tick_at"),
        .note_us = time_column(c, r, "reflected_at"),
        .lessons_until_us = time_column(c, r, "lessons_until"),
        .session = { .day_start_equity = decimal_column(r, "day_start_equity_usd"),
                     .realized_today = decimal_column(r, "realized_today_usd"),
                     .executed_today = int_column(r, "executed_today"),
                     .losing_closes = int_column(r, "losing_closes") },
        .closed_since_reflection = int_column(r, "closed_since_reflection"),
        .snapshots.arena = &c->arena,
        .changed.arena = &c->arena,
        .begun.arena = &c->arena,
    };
    l->session.last_tick_us = l->base_tick_us;
    if (!rows_text(r, 0, "lessons_until"))
        l->lessons_until_us = INT64_MAX;
    return trade_rows_read(c, rows_text(r, 0, "open"), &l->open, &l->open_count);
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
    return !cadence_decide(&l->c->arena, &s).reason;
}

/* ---- what is stored ---- */

static void put_record(struct buf *list, const struct trade *t, bool closed, bool new, int64_t tick_us)
{
    buf_text(list, list->len ? ",{" : "{");
    json_put_text(list, "id", t->id);
    json_put_text(list, "status", closed ? "closed" : "open");
    if (new) {
        json_put_text(list, "symbol", t->symbol);
        json_put_text(list, "side", trade_side_names[t->side]);
        json_put_entry(list, t);
        json_put_text(list, "situation", t->situation);
    }
    if (closed) {
        json_put_exit(list, t);
        json_put_quantity(list, "realized_pnl_usd", t->realized_pnl_usd);
    }
    json_put_decimal(list, "fees_usd", t->fees_usd);
    json_put_decimal(list, "mfe_usd", t->mfe_usd);
    json_put_decimal(list, "mae_usd", t->mae_usd);
    json_put_quantity(list, "size_base", t->size_base);
    json_put_quantity(list, "average_entry_price", t->average_entry_price);
    json_put_quantity(list, "realized_so_far_usd", t->realized_pnl_usd);
    json_put_quantity(list, "mark_price", t->mark_price);
    json_put_time(list, "last_tick_at", tick_us);
    buf_char(list, '}');
}

/* A row that the database has is changed, one that it has not is added. */
static void keep_trade(struct ledger *l, const struct trade *t, bool closed, int64_t tick_us)
{
    bool new = t->entry_tick_us > l->base_tick_us;
    put_record(new ? &l->begun : &l->changed, t, closed, new, tick_us);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    buf_json_key(out, key);
    buf_fmt(out, "%" PRId64, value);
}

static void put_raw(struct buf *out, const char *key, const char *json)
{
    buf_json_key(out, key);
    buf_text(out, json);
}

/* The parts of an answer, kept with the tick so that it can be given again byte for byte. */
struct answer {
    const char *snapshot_id, *ops, *open, *unmatched_fees;
    bool reflection_due, replayed;
};

static void put_answer(struct buf *out, const struct answer *a)
{
    buf_char(out, '{');
    json_put_text(out, "snapshot_id", a->snapshot_id);
    put_raw(out, "ops", a->ops);
    put_raw(out, "open", a->open);
    put_raw(out, "unmatched_fees", a->unmatched_fees);
    put_raw(out, "reflection_due", a->reflection_due ? "true" : "false");
    put_raw(out, "replayed", a->replayed ? "true" : "false");
    buf_char(out, '}');
}

static void keep_snapshot(struct ledger *l, const struct tick_in *in, const struct tick *tick,
                          const struct answer *a)
{
    struct buf *out = &l->snapshots;
    struct buf input = { .arena = out->arena };
    tick_input_json(&input, in);
    buf_text(out, out->len ? ",{" : "{");
    json_put_text(out, "id", a->snapshot_id);
    json_put_time(out, "tick_at", tick->tick_us);
    put_raw(out, "equity_usd", in->portfolio->equity_usd);
    json_put_text(out, "action_kind", tick->intent.kind);
    json_put_text(out, "engine_kind", tick->intent.engine_kind);
    json_put_text(out, "engine_rule", tick->intent.engine_rule);
    put_raw(out, "input", buf_string(&input));
    json_put_text(out, "content_hash", tick_content_hash(out->arena, in, tick));
    put_raw(out, "ops", a->ops);
    put_raw(out, "open", a->open);
    put_raw(out, "unmatched_fees", a->unmatched_fees);
    put_raw(out, "reflection_due", a->reflection_due ? "true" : "false");
    json_put_decimal(out, "day_start_equity_usd", l->session.day_start_equity);
    put_int(out, "executed_today", l->session.executed_today);
    json_put_decimal(out, "realized_today_usd", l->session.realized_today);
    put_int(out, "losing_closes", l->session.losing_closes);
    buf_char(out, '}');
}

/* ---- applying ---- */

/* What only the ledger knows of a trade: its id, and the market and the lessons that it was opened under. */
static int64_t stamp(struct ledger *l, const struct tick_in *in, struct materialized *m)
{
    int64_t closes = 0;
    for (size_t i = 0; i < m->op_count; i++) {
        struct trade_op *op = &m->ops[i];
        closes += op->kind == TRADE_CLOSE;
        if (op->kind != TRADE_OPEN)
            continue;
        op->trade.id = id_new(&l->c->arena);
        op->trade.entry_regime_tag = tick_regime(&l->c->arena, in, op->trade.symbol);
        op->trade.entry_lessons_hash = tick_lessons(in, l->lessons_hash);
    }
    return closes;
}

enum err ledger_apply(struct ledger *l, const struct tick_in *in, struct buf *answer)
{
    struct arena *arena = &l->c->arena;
    struct tick tick;
    struct materialized m;
    struct decimal equity;
    TRY(tick_build(l->c, in, "", &tick));
    tick.snapshot_id = id_new(arena);
    enum materialize_status status =
        materialize(arena, l->open, l->open_count, &tick, l->session.last_tick_us, &m);
    if (status != MATERIALIZED)
        return tick_refusal(l->c, status, m.symbol, "");
    int64_t closes = stamp(l, in, &m);
    (void)decimal_parse(in->portfolio->equity_usd, &equity);
    if (!session_count(&l->session, &tick, &m, equity))
        return tick_refusal(l->c, MATERIALIZE_TOO_LARGE, "the PnL of today", "");
    struct buf ops = { .arena = arena }, open = ops, fees = ops;
    l->open = materialize_open_rows(arena, &m, &l->open_count);
    situation_describe_opened(arena, l->open, l->open_count, &l->session);
    trade_ops_json(&ops, &m);
    trade_rows_json(&open, l->open, l->open_count);
    trade_fees_json(&fees, &m);
    struct answer a = { tick.snapshot_id,
                        buf_string(&ops),
                        buf_string(&open),
                        buf_string(&fees),
                        is_reflection_due(l, closes),
                        false };
    keep_snapshot(l, in, &tick, &a);
    for (size_t i = 0; i < m.op_count; i++)
        if (m.ops[i].kind == TRADE_CLOSE)
            keep_trade(l, &m.ops[i].trade, true, tick.tick_us);
    put_answer(answer, &a);
    l->reflection_due = a.reflection_due;
    l->last_snapshot_id = tick.snapshot_id;
    l->closed_since_reflection += closes;
    l->closed += closes;
    l->applied++;
    return OK;
}

static const char *bracketed(struct buf *list)
{
    return arena_fmt(list->arena, "[%s]", buf_string(list));
}

enum err ledger_store(struct ledger *l, bool *stored)
{
    struct arena *arena = &l->c->arena;
    for (size_t i = 0; i < l->open_count; i++)
        keep_trade(l, &l->open[i], false, l->session.last_tick_us);
    struct ledger_params params = {
        .id = l->id,
        .tick_at = time_of(arena, l->session.last_tick_us),
        .snapshot_id = l->last_snapshot_id,
        .skill_id = l->skill_id,
        .version = l->version,
        .day_start_equity_usd = text_of(arena, l->session.day_start_equity),
        .realized_today_usd = text_of(arena, l->session.realized_today),
        .snapshots = bracketed(&l->snapshots),
        .changed = bracketed(&l->changed),
        .begun = bracketed(&l->begun),
        .expected = l->ticks,
        .count = l->applied,
        .executed_today = l->session.executed_today,
        .losing_closes = l->session.losing_closes,
        .closed = l->closed,
    };
    struct rows *r;
    TRY(db_rows_from(l->c, &TICK_WRITE, param_fields, &params, &r));
    *stored = rows_count(r) == 1;
    if (*stored && l->begun.len && !l->c->route->lines)
        situations_embed_later(
            l->c, &(struct situations_scope){ .id = l->id, .skill_id = l->skill_id, .version = l->version });
    return OK;
}

enum err ledger_replay(const struct ledger *l, const struct tick_in *in, struct buf *answer,
                       bool *reflection_due)
{
    struct call *c = l->c;
    struct ledger_params params = { .id = l->id, .tick_at = in->tick_at };
    struct tick tick;
    struct rows *r;
    TRY(tick_build(c, in, "", &tick));
    TRY(db_rows_from(c, &TICK_KEPT, param_fields, &params, &r));
    if (rows_count(r) == 0)
        return tick_out_of_order(c, "the last tick of this deployment", l->session.last_tick_us,
                                 tick.tick_us);
    if (strcmp(tick_content_hash(&c->arena, in, &tick), rows_text(r, 0, "content_hash")) != 0)
        return problem_set(&c->problem, ERR_TICK_CONFLICT,
                           "the tick of %s is stored as snapshot %s with another content", in->tick_at,
                           rows_text(r, 0, "id"));
    struct answer a = { rows_text(r, 0, "id"),
                        rows_text(r, 0, "ops"),
                        rows_text(r, 0, "open"),
                        rows_text(r, 0, "unmatched_fees"),
                        rows_text(r, 0, "reflection_due")[0] == 't',
                        true };
    put_answer(answer, &a);
    *reflection_due = a.reflection_due;
    return OK;
}

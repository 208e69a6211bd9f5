/* Reflection: distills lessons from the trades of a deployment when due, and lists the attempts. */
#include "core/base/json_put.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/instant.h"
#include "handlers/reflection/reflection_internal.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all reflection routes. */
struct reflect_in {
    const char *id, *as_of, *force, *dry_run, *deployment_id, *outcome;
    struct texts suppress;
    struct cursor_values cursor;
    int64_t max_trades, limit;
};

static const char *const outcomes[] = { "ran", "skipped", "rejected", "model_failed", NULL };

/* clang-format off */
#define R(from, kind, member, ...) FIELD(from, kind, struct reflect_in, member, __VA_ARGS__)
static const struct field reflect_fields[] = {
    FIELD_ID(struct reflect_in),
    R(FROM_BODY, KIND_BOOL, force, .fallback = "false"),
    R(FROM_BODY, KIND_TIME, as_of),
    R(FROM_BODY, KIND_BOOL, dry_run, .fallback = "false"),
    R(FROM_BODY, KIND_TEXTS, suppress, .max = REFLECT_SLOTS - 1, .item_max = 64),
    R(FROM_BODY, KIND_INT, max_trades, .min = 1, .max = REFLECTION_TRADES_MAX, .fallback = "1000"),
    END_FIELDS,
};
static const struct field list_fields[] = {
    R(FROM_QUERY, KIND_UUID, deployment_id),
    R(FROM_QUERY, KIND_CHOICE, outcome, .choices = outcomes),
    FIELD_AS_OF(struct reflect_in),
    FIELD_PAGE(struct reflect_in),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(state, memory_enabled, reflection_cadence, every_n_trades, reflection_model, as_of, strategy, avoid,
        note_id, generated_at, lessons_text, too_early, any_closed, closed_since, failed_at);
QUERY(reflection_state, REFLECTION_STATE, reflection_params, READS(state), .missing = "deployment {id}");
QUERY(reflection_list, REFLECTION_LIST, list_fields);
QUERY(reflection_list_of_deployment, REFLECTION_LIST_OF_DEPLOYMENT, list_fields);

/* ---- slots ---- */

enum err reflection_check_slots(struct call *c, const char *field, const struct texts *names)
{
    enum err err = OK;
    for (size_t i = 0; i < names->count; i++)
        if (!slot_set_of(names->items[i]))
            err = problem_field(
                &c->problem, arena_fmt(&c->arena, "%s[%zu]", field, i), FAULT_NOT_A_CHOICE,
                "must be one of entry_timing, sizing, symbol_selection, exit_timing, regime_fit");
    return err;
}

slot_set reflection_slot_set(const struct texts *names)
{
    slot_set slots = 0;
    for (size_t i = 0; i < names->count; i++)
        slots |= slot_set_of(names->items[i]);
    return slots;
}

struct texts reflection_slot_names(struct arena *arena, slot_set slots)
{
    struct texts names = { 0, arena_alloc(arena, REFLECT_SLOTS * sizeof *names.items) };
    names.count = slot_set_names(slots, names.items);
    return names;
}

/* ---- the state ---- */

static const char *copy_of(struct call *c, const struct rows *r, const struct column *column)
{
    return row_copy(r, 0, column, &c->arena);
}

static enum err read_state(struct call *c, struct reflection *r)
{
    struct rows *row;
    arena_release(&r->state.arena);
    TRY(query_one(c, &reflection_state, r, &r->state.arena, &row));
    r->state.strategy = rows_text(row, 0, &state.strategy);
    r->state.avoid = rows_text(row, 0, &state.avoid);
    r->state.lessons = rows_text(row, 0, &state.lessons_text);
    r->state.any_closed = row_bool(row, 0, &state.any_closed);
    r->state.cadence = (struct cadence_state){
        .cadence = cadence_in_force(rows_text(row, 0, &state.reflection_cadence),
                                    row_bool(row, 0, &state.memory_enabled)),
        .every_n_trades = row_int(row, 0, &state.every_n_trades, 1),
        .closed = row_int(row, 0, &state.closed_since, 0),
        .now_us = row_time_us(row, 0, &state.as_of, 0),
        .has_note = rows_text(row, 0, &state.generated_at),
        .note_us = row_time_us(row, 0, &state.generated_at, 0),
        .has_failed = rows_text(row, 0, &state.failed_at),
        .failed_us = row_time_us(row, 0, &state.failed_at, 0),
    };
    r->active_note_id = copy_of(c, row, &state.note_id);
    r->own_model = copy_of(c, row, &state.reflection_model);
    r->as_of = rows_time(row, 0, &state.as_of, &c->arena);
    if (row_bool(row, 0, &state.too_early))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the active note is of %s, after %s",
                           rows_time(row, 0, &state.generated_at, &c->arena), r->as_of);
    return OK;
}

static struct cadence_skip decide_skip(struct call *c, const struct reflection *r, bool forced)
{
    return cadence_decide_request(&c->arena, &r->state.cadence, r->state.any_closed, forced);
}

/* ---- one reflection ---- */

static enum err store_skip(struct call *c, struct reflection *r, struct cadence_skip skip)
{
    r->outcome = "skipped";
    r->reason = skip.reason;
    r->detail = skip.detail;
    r->cost_usd = "0";
    return reflection_store(c, r);
}

/* Another attempt may have finished between the first read and the claim, so read the state again. */
static enum err reflect_claimed(struct call *c, struct reflection *r, bool forced)
{
    TRY(read_state(c, r));
    struct cadence_skip skip = decide_skip(c, r, forced);
    if (skip.reason)
        return store_skip(c, r, skip);
    TRY(reflection_ask(c, r));
    return reflection_store(c, r);
}

static void put_dry(struct call *c, struct reflection *r, struct cadence_skip skip, bool due)
{
    struct buf *out = r->out;
    const char *model = reflection_model(c, r);
    buf_text(out, "{\"outcome\":\"dry_run\"");
    json_put_text(out, "deployment_id", r->id);
    json_put_text(out, "as_of", r->as_of);
    buf_json_key(out, "due");
    buf_json_bool(out, due);
    json_put_text(out, "reason", skip.reason);
    json_put_text(out, "detail", skip.detail);
    reflection_put_window(out, r);
    json_put_text(out, "active_note_id", r->active_note_id);
    json_put_text(out, "model", model ? model : "builtin");
    buf_text(out, ",\"prompt\":{");
    json_put_text(out, "system", r->prompt.system);
    json_put_text(out, "user", r->prompt.user);
    buf_json_key(out, "tokens");
    buf_fmt(out, "%zu}}", r->prompt.tokens);
}

static enum err attempt(struct call *c, struct reflection *r, const struct reflection_request *ask)
{
    TRY(read_state(c, r));
    const struct cadence_skip skip = decide_skip(c, r, ask->force);
    if (ask->dry_run) {
        const bool due = !decide_skip(c, r, false).reason;
        TRY(reflection_prompt(c, r));
        put_dry(c, r, skip, due);
        return OK;
    }
    if (skip.reason)
        return store_skip(c, r, skip);
    enum err err = reflection_claim(c, r);
    if (err == OK)
        err = reflect_claimed(c, r, ask->force);
    if (err != OK) /* even if it is unknown whether the claim was made */
        reflection_release(c, r, err);
    return err;
}

enum err reflection_run(struct call *c, const struct reflection_request *ask, struct buf *out)
{
    struct reflection r = {
        .id = ask->deployment_id,
        .as_of = ask->as_of,
        .forced = ask->force ? "true" : "false",
        .suppressed = reflection_slot_names(&c->arena, ask->suppressed),
        .slots = ask->suppressed,
        .max_trades = ask->max_trades,
        .shown_trades = REFLECT_SHOWN_MAX,
        .reason_chars = REFLECT_REASON_READ,
        .retry_us = CADENCE_RETRY_US,
        .out = out,
        .start = out->len,
    };
    enum err err = attempt(c, &r, ask);
    arena_release(&r.state.arena);
    return err;
}

/* ---- requests ---- */

/* The transaction that stores the outcome also stores the response, so the reply must exist before it. */
static enum err reflect_post(struct call *c)
{
    const struct reflect_in *in = c->in;
    enum err names = reflection_check_slots(c, "suppress", &in->suppress),
             instant = instant_check(c, "as_of", in->as_of);
    TRY(names);
    TRY(instant);
    const struct reflection_request ask = {
        .deployment_id = in->id,
        .as_of = in->as_of,
        .force = field_is_true(in->force),
        .dry_run = field_is_true(in->dry_run),
        .suppressed = reflection_slot_set(&in->suppress),
        .max_trades = in->max_trades,
    };
    return reflection_run(c, &ask, call_reply_json(c, 200));
}

static enum err list_reflections(struct call *c)
{
    const struct reflect_in *in = c->in;
    return query_reply(c, 200, in->deployment_id ? &reflection_list_of_deployment : &reflection_list, in);
}

#define IN(table) INPUT(table, struct reflect_in)

const struct route reflection_routes[] = {
    { POST, "/v1/deployments/{id}/reflect", reflect_post, IN(reflect_fields), .role = ROLE_AGENT,
      .waits = true, .models = true },
    { GET, "/v1/reflections", list_reflections, IN(list_fields), .role = ROLE_READER, .waits = true },
    END_ROUTES,
};

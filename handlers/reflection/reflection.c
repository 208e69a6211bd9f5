/* Reflection: whether it is time to distil lessons from a deployment's trades, how that goes, and every
 * attempt. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/time_text.h"
#include "core/ledger/json_put.h"
#include "core/reflect/cadence.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/instant.h"
#include "handlers/reflection/reflection_parts.h"
#include "handlers/routes.h"

/* Whatever a request about reflection may carry. */
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
    R(FROM_PATH, KIND_UUID, id, .required = true),
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
    R(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST),
    R(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"),
    R(FROM_QUERY, KIND_CURSOR, cursor),
    { .name = "only_outcome", .from = COMPUTED, .kind = KIND_LINE, .offset = offsetof(struct reflect_in, outcome) },
    END_FIELDS,
};
/* clang-format on */

/* ---- slots ---- */

enum err slots_check(struct call *c, const char *field, const struct texts *names)
{
    enum err err = OK;
    for (size_t i = 0; i < names->count; i++)
        if (!slot_set_of(names->items[i]))
            err = problem_field(
                &c->problem, arena_fmt(&c->arena, "%s[%zu]", field, i), FAULT_NOT_A_CHOICE,
                "must be one of entry_timing, sizing, symbol_selection, exit_timing, regime_fit");
    return err;
}

slot_set slots_named(const struct texts *names)
{
    slot_set slots = 0;
    for (size_t i = 0; i < names->count; i++)
        slots |= slot_set_of(names->items[i]);
    return slots;
}

struct texts slot_names(struct arena *arena, slot_set slots)
{
    struct texts names = { 0, arena_alloc(arena, REFLECT_SLOTS * sizeof *names.items) };
    names.count = slot_set_names(slots, names.items);
    return names;
}

/* ---- the cadence ---- */

static bool is_true(const struct rows *state, const char *column)
{
    const char *text = rows_text(state, 0, column);
    return text && *text == 't';
}

static int64_t int_of(const struct rows *state, const char *column)
{
    return strtoll(rows_text(state, 0, column), NULL, 10);
}

static int64_t time_of(struct call *c, const struct rows *state, const char *column)
{
    int64_t us = 0;
    if (rows_text(state, 0, column))
        (void)time_text_parse(rows_time(&c->arena, state, 0, column), &us);
    return us;
}

static struct cadence_skip decide(struct call *c, const struct rows *state, bool forced)
{
    const struct cadence_state s = {
        .cadence = cadence_find(rows_text(state, 0, "reflection_cadence")),
        .every_n_trades = int_of(state, "every_n_trades"),
        .closed = int_of(state, "closed_since"),
        .now_us = time_of(c, state, "as_of"),
        .has_note = rows_text(state, 0, "generated_at"),
        .note_us = time_of(c, state, "generated_at"),
        .has_failed = rows_text(state, 0, "failed_at"),
        .failed_us = time_of(c, state, "failed_at"),
    };
    return cadence_decide_request(&c->arena, &s, is_true(state, "any_closed"), forced);
}

/* ---- one reflection ---- */

static const char *kept_text(struct call *c, const struct rows *state, const char *column)
{
    const char *text = rows_text(state, 0, column);
    return text ? arena_text(&c->arena, text) : NULL;
}

static enum err read_state(struct call *c, struct reflection *r)
{
    struct rows *state;
    TRY(db_rows_from(c, &REFLECTION_STATE, reflection_params, r, &state));
    if (!rows_count(state))
        return ERR_NOT_FOUND;
    if (r->state)
        rows_release(c, r->state);
    r->state = state;
    r->active_note_id = kept_text(c, state, "note_id");
    r->own_model = kept_text(c, state, "reflection_model");
    r->as_of = rows_time(&c->arena, state, 0, "as_of");
    if (is_true(state, "too_early"))
        return problem_set(&c->problem, ERR_TIME_ORDER, "the active note is of %s, after %s",
                           rows_time(&c->arena, state, 0, "generated_at"), r->as_of);
    return OK;
}

static enum err store_skip(struct call *c, struct reflection *r, struct cadence_skip skip)
{
    r->came_of_it = "skipped";
    r->why = skip.reason;
    r->detail = skip.detail;
    r->cost_usd = "0";
    return reflection_store(c, r);
}

/* The one before may have ended between the first look and the claim, so it looks again. */
static enum err reflect_claimed(struct call *c, struct reflection *r, bool forced)
{
    TRY(read_state(c, r));
    struct cadence_skip skip = decide(c, r->state, forced);
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

enum err reflection_run(struct call *c, const struct reflection_ask *ask, struct buf *out)
{
    struct reflection r = {
        .id = ask->deployment_id,
        .as_of = ask->as_of,
        .forced = ask->force ? "true" : "false",
        .suppressed = slot_names(&c->arena, ask->suppressed),
        .slots = ask->suppressed,
        .max_trades = ask->max_trades,
        .out = out,
        .start = out->len,
    };
    TRY(read_state(c, &r));
    struct cadence_skip skip = decide(c, r.state, ask->force);
    if (ask->dry_run) {
        const bool due = !decide(c, r.state, false).reason;
        TRY(reflection_prompt(c, &r));
        put_dry(c, &r, skip, due);
        return OK;
    }
    if (skip.reason)
        return store_skip(c, &r, skip);
    enum err err = reflection_claim(c, &r);
    if (err == OK)
        err = reflect_claimed(c, &r, ask->force);
    if (err != OK) /* also when nobody knows whether there is a claim */
        reflection_release(c, &r);
    return err;
}

/* ---- requests ---- */

/* The answer is part of the transaction that stores what came of it, so it is begun before. */
static enum err reflect(struct call *c)
{
    const struct reflect_in *in = c->in;
    enum err names = slots_check(c, "suppress", &in->suppress),
             instant = instant_check(c, "as_of", in->as_of);
    TRY(names);
    TRY(instant);
    const struct reflection_ask ask = {
        .deployment_id = in->id,
        .as_of = in->as_of,
        .force = *in->force == 't',
        .dry_run = *in->dry_run == 't',
        .suppressed = slots_named(&in->suppress),
        .max_trades = in->max_trades,
    };
    return reflection_run(c, &ask, reply_json(c, 200));
}

static enum err list(struct call *c)
{
    const struct reflect_in *in = c->in;
    return db_reply(c, 200, in->deployment_id ? &REFLECTION_LIST_OF_DEPLOYMENT : &REFLECTION_LIST);
}

#define IN(table) .fields = table, .in_size = sizeof(struct reflect_in)

const struct route reflection_routes[] = {
    { POST, "/v1/deployments/{id}/reflect", reflect, IN(reflect_fields), .role = ROLE_AGENT, .waits = true,
      .models = true },
    { GET, "/v1/reflections", list, IN(list_fields), .role = ROLE_READER, .waits = true },
    END_ROUTES,
};

/* A reflection on its way into the database: the claim that keeps it to one at a time, and what came of it.
 */
#include <inttypes.h>

#include "core/ledger/json_put.h"
#include "handlers/reflection/reflection_parts.h"
#include "server/id.h"
#include "server/loop.h"
#include "server/metrics.h"

enum { CLAIM_GRACE_MS = 5000 };

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct reflection, member)
const struct field reflection_params[] = {
    P(KIND_UUID, id), P(KIND_TIME, as_of), P(KIND_BOOL, forced), P(KIND_TEXTS, suppressed), P(KIND_INT, max_trades),
    P(KIND_UUID, claim), P(KIND_INT, claim_ms), P(KIND_UUID, reflection_id), P(KIND_LINE, came_of_it), P(KIND_LINE, why),
    P(KIND_TEXT, detail), P(KIND_UUID, note_id), P(KIND_TIME, window_start), P(KIND_TIME, window_end), P(KIND_TEXT, lessons_text),
    P(KIND_LINE, content_hash), P(KIND_LINE, model_used), P(KIND_NUMBER, cost_usd), P(KIND_INT, trades_considered),
    P(KIND_INT, input_tokens), P(KIND_INT, output_tokens),
    END_FIELDS,
};
/* clang-format on */

static enum err run(struct call *c, const struct statement *st, const struct reflection *r,
                    struct rows **rows)
{
    return db_rows_from(c, st, reflection_params, r, rows);
}

/* ---- the claim ---- */

enum err reflection_claim(struct call *c, struct reflection *r)
{
    struct rows *found;
    r->claim = id_new(&c->arena);
    r->claim_ms = call_limit_ms(c) + CLAIM_GRACE_MS;
    TRY(run(c, &REFLECTION_CLAIM, r, &found));
    if (rows_text(found, 0, "claimed"))
        return OK;
    const char *left = rows_text(found, 0, "seconds_left");
    r->claim = NULL;
    return problem_set(&c->problem, ERR_REFLECTION_RUNNING,
                       "ask again when it has ended, which takes at most %s s more", left ? left : "a few");
}

void reflection_release(struct call *c, struct reflection *r)
{
    struct rows *none;
    if (r->claim)
        (void)!run(c, &REFLECTION_RELEASE, r, &none);
}

/* ---- the answer ---- */

static void put_int(struct buf *out, const char *key, int64_t value)
{
    buf_json_key(out, key);
    buf_fmt(out, "%" PRId64, value);
}

static void put_raw(struct buf *out, const char *key, const char *json)
{
    buf_json_key(out, key);
    buf_text(out, json ? json : "null");
}

void reflection_put_window(struct buf *out, const struct reflection *r)
{
    put_raw(out, "forced", r->forced);
    buf_json_key(out, "suppressed");
    buf_char(out, '[');
    for (size_t i = 0; i < r->suppressed.count; i++)
        buf_fmt(out, "%s\"%s\"", i ? "," : "", r->suppressed.items[i]);
    buf_char(out, ']');
    put_int(out, "trades_considered", r->trades_considered);
    json_put_text(out, "window_start", r->window_start);
    json_put_text(out, "window_end", r->window_end);
}

static void put_answer(struct reflection *r, const struct rows *note)
{
    struct buf *out = r->out;
    out->len = r->start; /* the transaction may run again */
    buf_char(out, '{');
    json_put_text(out, "reflection_id", r->reflection_id);
    json_put_text(out, "deployment_id", r->id);
    json_put_text(out, "as_of", r->as_of);
    json_put_text(out, "outcome", r->came_of_it);
    json_put_text(out, "reason", r->why);
    json_put_text(out, "detail", r->detail);
    reflection_put_window(out, r);
    buf_json_key(out, "note");
    if (note)
        rows_json(out, note, 0);
    else
        buf_text(out, "null");
    json_put_text(out, "active_note_id", note ? r->note_id : r->active_note_id);
    json_put_text(out, "model_used", r->model_used);
    put_int(out, "input_tokens", r->input_tokens);
    put_int(out, "output_tokens", r->output_tokens);
    put_raw(out, "cost_usd", r->cost_usd);
    buf_char(out, '}');
}

/* ---- the transaction ---- */

/* Another may have begun when this one took longer than its claim lasts, or lost the connection of it. */
static enum err settle(struct call *c, const struct reflection *r)
{
    struct rows *found;
    TRY(run(c, &REFLECTION_SETTLE, r, &found));
    if (!rows_text(found, 0, "deployment_id"))
        return ERR_NOT_FOUND;
    if (!rows_text(found, 0, "claim"))
        return problem_set(&c->problem, ERR_REFLECTION_RUNNING,
                           "this one lost its place while it worked, and has stored nothing");
    return OK;
}

static enum err add(struct call *c, const struct reflection *r)
{
    struct rows *added;
    TRY(run(c, &REFLECTION_ADD, r, &added));
    return rows_count(added) ? OK : ERR_NOT_FOUND;
}

static enum err note_tx(struct call *c, void *arg)
{
    (void)arg;
    struct reflection *r = c->in;
    struct rows *note;
    TRY(settle(c, r));
    TRY(run(c, &REFLECTION_NOTE_WRITE, r, &note));
    if (!rows_count(note))
        return ERR_NOT_FOUND;
    TRY(add(c, r));
    put_answer(r, note);
    return OK;
}

static enum err no_note(struct call *c, void *arg)
{
    (void)arg;
    struct reflection *r = c->in;
    struct rows *none;
    if (r->claim)
        TRY(run(c, &REFLECTION_RELEASE, r, &none));
    TRY(add(c, r));
    put_answer(r, NULL);
    return OK;
}

/* Without a claim to give back or a key to keep the answer for, one statement does it, which needs no
 * transaction. */
static bool is_one_statement(const struct call *c, const struct reflection *r)
{
    return !r->claim && !c->before_commit;
}

enum err reflection_store(struct call *c, struct reflection *r)
{
    void *in = c->in; /* of whoever asked: a tick has its own */
    r->reflection_id = id_new(&c->arena);
    r->note_id = r->lessons_text ? id_new(&c->arena) : NULL;
    c->in = r;
    enum err err =
        is_one_statement(c, r) ? no_note(c, NULL) : db_tx(c, r->lessons_text ? note_tx : no_note, NULL);
    c->in = in;
    if (err == OK)
        metrics_reflection(c->loop->metrics, r->came_of_it, r->why);
    return err;
}

/* Stores a reflection: the claim, which allows one attempt at a time, and the outcome. */
#include "core/base/json_put.h"
#include "handlers/reflection/reflection_internal.h"
#include "server/dispatch/query.h"
#include "server/id.h"
#include "server/metrics.h"

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct reflection, member)
const struct field reflection_params[] = {
    P(KIND_UUID, id), P(KIND_TIME, as_of), P(KIND_BOOL, forced), P(KIND_TEXTS, suppressed), P(KIND_INT, max_trades),
    P(KIND_INT, shown_trades), P(KIND_INT, reason_chars), P(KIND_INT, retry_us),
    P(KIND_UUID, claim), P(KIND_INT, claim_ms), P(KIND_UUID, reflection_id), P(KIND_LINE, outcome), P(KIND_LINE, reason),
    P(KIND_TEXT, detail), P(KIND_UUID, note_id), P(KIND_TIME, window_start), P(KIND_TIME, window_end), P(KIND_TEXT, lessons_text),
    P(KIND_LINE, content_hash), P(KIND_LINE, model_used), P(KIND_NUMBER, cost_usd), P(KIND_INT, trades_considered),
    P(KIND_INT, input_tokens), P(KIND_INT, output_tokens),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(claimed, claimed, seconds_left);
COLUMNS(settled, claim, deployment_id);
QUERY(claim_acquire, REFLECTION_CLAIM, reflection_params, READS(claimed));
QUERY(claim_release, REFLECTION_RELEASE, reflection_params);
QUERY(reflection_settle, REFLECTION_SETTLE, reflection_params, READS(settled));
QUERY(note_write, REFLECTION_NOTE_WRITE, reflection_params, .missing = "deployment {id}");
QUERY(reflection_add, REFLECTION_ADD, reflection_params, .missing = "deployment {id}");

/* ---- the claim ---- */

enum err reflection_claim(struct call *c, struct reflection *r)
{
    struct rows *found;
    r->claim = id_new(&c->arena);
    r->claim_ms = call_limit_ms(c) + CALL_CLAIM_GRACE_MS;
    TRY(query_one(c, &claim_acquire, r, NULL, &found));
    if (rows_text(found, 0, &claimed.claimed))
        return OK;
    const char *left = rows_text(found, 0, &claimed.seconds_left);
    r->claim = NULL;
    return problem_set(&c->problem, ERR_REFLECTION_RUNNING,
                       "ask again when it has ended, which takes at most %s s more", left ? left : "a few");
}

void reflection_release(struct call *c, struct reflection *r, enum err ended)
{
    if (r->claim)
        query_clean_up(c, &claim_release, r, ended);
}

/* ---- the response ---- */

void reflection_put_window(struct buf *out, const struct reflection *r)
{
    json_put_raw(out, "forced", r->forced);
    json_put_texts(out, "suppressed", r->suppressed.items, r->suppressed.count);
    json_put_int(out, "trades_considered", r->trades_considered);
    json_put_text(out, "window_start", r->window_start);
    json_put_text(out, "window_end", r->window_end);
}

static void put_response(struct reflection *r, const struct rows *note)
{
    struct buf *out = r->out;
    out->len = r->start; /* the transaction may be a retry */
    buf_char(out, '{');
    json_put_text(out, "reflection_id", r->reflection_id);
    json_put_text(out, "deployment_id", r->id);
    json_put_text(out, "as_of", r->as_of);
    json_put_text(out, "outcome", r->outcome);
    json_put_text(out, "reason", r->reason);
    json_put_text(out, "detail", r->detail);
    reflection_put_window(out, r);
    buf_json_key(out, "note");
    if (note)
        rows_json(out, note, 0);
    else
        buf_text(out, "null");
    json_put_text(out, "active_note_id", note ? r->note_id : r->active_note_id);
    json_put_text(out, "model_used", r->model_used);
    json_put_int(out, "input_tokens", r->input_tokens);
    json_put_int(out, "output_tokens", r->output_tokens);
    json_put_raw(out, "cost_usd", r->cost_usd);
    buf_char(out, '}');
}

/* ---- the transaction ---- */

/* The claim is lost if the attempt outlasts it, or if the database connection that made it is lost. */
static enum err settle_claim(struct call *c, const struct reflection *r)
{
    struct rows *found;
    TRY(query_one(c, &reflection_settle, r, NULL, &found));
    if (!rows_text(found, 0, &settled.deployment_id))
        return query_missing(c, &reflection_add, r);
    if (!rows_text(found, 0, &settled.claim))
        return problem_set(&c->problem, ERR_REFLECTION_RUNNING,
                           "this attempt lost its claim before it finished, and stored nothing");
    return OK;
}

static enum err add_record(struct call *c, const struct reflection *r)
{
    struct rows *added;
    return query_one(c, &reflection_add, r, NULL, &added);
}

static enum err store_note(struct call *c, void *arg)
{
    struct reflection *r = arg;
    struct rows *note;
    TRY(settle_claim(c, r));
    TRY(query_one(c, &note_write, r, NULL, &note));
    c->left_unsealed = true;
    TRY(add_record(c, r));
    put_response(r, note);
    return OK;
}

static enum err store_outcome(struct call *c, void *arg)
{
    struct reflection *r = arg;
    if (r->claim)
        TRY(query_run(c, &claim_release, r));
    TRY(add_record(c, r));
    put_response(r, NULL);
    return OK;
}

/* Without a claim to release and an Idempotency-Key to store, one statement is enough: no transaction. */
static bool is_one_statement(const struct call *c, const struct reflection *r)
{
    return !r->claim && !c->claim;
}

enum err reflection_store(struct call *c, struct reflection *r)
{
    r->reflection_id = id_new(&c->arena);
    r->note_id = r->lessons_text ? id_new(&c->arena) : NULL;
    if (is_one_statement(c, r))
        TRY(store_outcome(c, r));
    else
        TRY(query_tx(c, r->lessons_text ? store_note : store_outcome, r));
    metrics_reflection(c->loop->metrics, r->outcome, r->reason);
    return OK;
}

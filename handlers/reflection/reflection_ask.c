/* The lessons of a reflection: written by a model or the built-in reflector, then checked. */
#include <string.h>

#include "core/base/line_text.h"
#include "core/base/list_text.h"
#include "core/base/time_text.h"
#include "core/base/utf8.h"
#include "core/reflect/lessons_hash.h"
#include "handlers/kit/job.h"
#include "handlers/reflection/reflection_internal.h"
#include "server/config.h"
#include "server/dispatch/query.h"
#include "server/log.h"
#include "server/remote/llm.h"

enum { DETAIL_BYTES = 900, MODEL_CHARS = 100, LOGGED_CHARS = 300 };
static const char builtin_name[] = "builtin";

/* ---- the trades ---- */

COLUMNS(trade, symbol, side, entry_regime_tag, entry_tick_at, exit_tick_at, entry_size_usd, entry_leverage,
        entry_reason, exit_reason, net_usd, fees_usd, mfe_usd, mae_usd, holding_minutes);
QUERY(reflection_trades, REFLECTION_TRADES, reflection_params, READS(trade));

static struct reflect_trade trade_of(const struct rows *r, int row)
{
    return (struct reflect_trade){
        .symbol = rows_text(r, row, &trade.symbol),
        .side = rows_text(r, row, &trade.side),
        .regime = rows_text(r, row, &trade.entry_regime_tag),
        .entry_us = row_time_us(r, row, &trade.entry_tick_at, 0),
        .exit_us = row_time_us(r, row, &trade.exit_tick_at, 0),
        .size_usd = row_double(r, row, &trade.entry_size_usd, 0),
        .leverage = row_double(r, row, &trade.entry_leverage, 0),
        .net_usd = row_double(r, row, &trade.net_usd, 0),
        .fees_usd = row_double(r, row, &trade.fees_usd, 0),
        .mfe_usd = row_double(r, row, &trade.mfe_usd, 0),
        .mae_usd = row_double(r, row, &trade.mae_usd, 0),
        .minutes = row_double(r, row, &trade.holding_minutes, 0),
        .entry_reason = rows_text(r, row, &trade.entry_reason),
        .exit_reason = rows_text(r, row, &trade.exit_reason),
    };
}

/* From the first entry to the last exit. */
static void set_window(struct arena *arena, struct reflection *r, const struct reflect_facts *f)
{
    r->trades_considered = (int64_t)f->count;
    if (!f->count)
        return;
    int64_t first_us = f->trades[0].entry_us;
    for (size_t i = 1; i < f->count; i++)
        if (f->trades[i].entry_us < first_us)
            first_us = f->trades[i].entry_us;
    r->window_start = time_text(arena, first_us);
    r->window_end = time_text(arena, f->trades[0].exit_us);
}

static enum err read_trades(struct call *c, struct arena *arena, const struct reflection *r,
                            struct reflect_facts *f)
{
    struct rows *found;
    TRY(query_rows(c, &reflection_trades, r, arena, &found));
    const size_t count = (size_t)rows_count(found);
    struct reflect_trade *trades = arena_alloc(arena, (count + 1) * sizeof *trades);
    for (size_t i = 0; i < count; i++) {
        call_yield(c); /* a thousand of them take a few milliseconds */
        trades[i] = trade_of(found, (int)i);
    }
    *f = (struct reflect_facts){
        .strategy = r->state.strategy,
        .avoid = r->avoid,
        .avoid_count = r->avoid_count,
        .lessons = r->state.lessons,
        .trades = trades,
        .count = count,
        .suppressed = r->slots,
    };
    return OK;
}

/* Copies what it needs from the facts. They are released afterwards, together with `arena`. */
typedef void take_fn(struct call *c, struct arena *arena, struct reflection *r,
                     const struct reflect_facts *f);

/* Reads the trades, passes them to `take` and releases them: a model may take minutes and hundreds of
 * requests may wait, so the trades must not stay in memory meanwhile. */
static enum err with_trades(struct call *c, struct reflection *r, take_fn *take)
{
    struct arena arena = { 0 };
    struct reflect_facts facts;
    const char *avoid = r->state.avoid;
    r->avoid = list_text_split(&c->arena, *avoid ? avoid : NULL, &r->avoid_count);
    enum err err = read_trades(c, &arena, r, &facts);
    if (err == OK) {
        set_window(&c->arena, r, &facts);
        take(c, &arena, r, &facts);
    }
    arena_release(&arena);
    arena_release(&r->state.arena);
    return err;
}

/* ---- the built-in reflector ---- */

/* The built-in reflector under way, in the arena of its job. */
struct builtin {
    struct reflect_trade *trades;
    size_t count;
    struct buf note;
    struct reflecting *reflecting;
};

static bool builtin_step(void *work)
{
    struct builtin *b = work;
    if (!b->reflecting)
        b->reflecting = reflect_begin(&b->note, b->trades, b->count);
    return reflect_step(b->reflecting);
}

/* Copies the trades into the job. */
static void builtin_take(struct call *c, struct arena *arena, struct reflection *r,
                         const struct reflect_facts *f)
{
    (void)c, (void)arena;
    struct arena *own = r->job->arena;
    struct builtin *b = r->job->work;
    b->count = f->count;
    b->trades = arena_alloc(own, (f->count + 1) * sizeof *b->trades);
    for (size_t i = 0; i < f->count; i++) {
        struct reflect_trade *t = &b->trades[i];
        *t = f->trades[i];
        t->symbol = arena_text(own, t->symbol);
        t->side = arena_text(own, t->side);
        t->regime = t->regime ? arena_text(own, t->regime) : NULL;
        t->entry_reason = t->exit_reason = NULL; /* only the numbers count */
    }
}

static enum err run_builtin(struct call *c, struct reflection *r, const char **text)
{
    struct builtin *b = r->job->work = arena_zero(r->job->arena, sizeof *b);
    b->note.arena = r->job->arena;
    TRY(with_trades(c, r, builtin_take));
    TRY(job_run(c, r->job));
    *text = arena_text(&c->arena, buf_string(&b->note));
    return OK;
}

static enum err ask_builtin(struct call *c, struct reflection *r, const char **text)
{
    struct arena arena = { 0 };
    r->model_used = builtin_name;
    r->cost_usd = "0";
    r->job = job_open(&arena, builtin_step);
    enum err err = run_builtin(c, r, text);
    arena_release(&arena);
    r->job = NULL;
    return err;
}

/* ---- the model ---- */

const char *reflection_model(const struct call *c, const struct reflection *r)
{
    if (!llm_configured(c->loop))
        return NULL;
    return r->own_model ? r->own_model : c->loop->config->model_name;
}

static void prompt_take(struct call *c, struct arena *arena, struct reflection *r,
                        const struct reflect_facts *f)
{
    call_yield(c);
    const struct reflect_prompt p = reflect_prompt(arena, f);
    r->prompt =
        (struct reflect_prompt){ arena_text(&c->arena, p.system), arena_text(&c->arena, p.user), p.tokens };
}

enum err reflection_prompt(struct call *c, struct reflection *r)
{
    return with_trades(c, r, prompt_take);
}

/* These failures are outcomes of the attempt; all others are errors of the request. */
static bool is_model_failure(enum err err)
{
    return err == ERR_MODEL_FAILED || err == ERR_MODEL_TIMEOUT;
}

/* Makes untrusted text safe for a quoted value in one log line. */
static const char *line_of(struct call *c, const char *text, size_t most_chars)
{
    struct buf line = { .arena = &c->arena };
    line_text(&line, text, most_chars);
    return buf_string(&line);
}

/* Clamps a count reported by a model server to the range of the column. */
static int64_t token_count(int64_t count)
{
    return count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : count;
}

static void set_outcome(struct call *c, struct reflection *r, const char *outcome, const char *reason,
                        const char *detail)
{
    r->outcome = outcome;
    r->reason = reason;
    r->detail = detail ? arena_copy(&c->arena, detail, utf8_cut(detail, strlen(detail), DETAIL_BYTES)) : NULL;
    if (reason)
        log_event(LOG_WARN, "reflection",
                  "outcome=%s reason=%s deployment=%s model=\"%s\" request_id=%s why=\"%s\"", outcome, reason,
                  r->id, r->model_used, c->request_id, r->detail ? line_of(c, r->detail, LOGGED_CHARS) : "");
}

static enum err ask_model(struct call *c, struct reflection *r, struct llm_answer *answer)
{
    TRY(reflection_prompt(c, r));
    const struct llm_question question = { .system = r->prompt.system,
                                           .user = r->prompt.user,
                                           .model = r->own_model };
    r->model_used = line_of(c, reflection_model(c, r), MODEL_CHARS);
    enum err err = llm_ask(&c->task, &question, answer);
    if (is_model_failure(err)) {
        set_outcome(c, r, "model_failed", problem_code(err), c->problem.detail);
        problem_clear(&c->problem);
        return OK;
    }
    TRY(err);
    const char *name = line_of(c, answer->model, MODEL_CHARS);
    if (*name)
        r->model_used = name;
    r->input_tokens = token_count(answer->tokens_in);
    r->output_tokens = token_count(answer->tokens_out);
    r->cost_usd = answer->cost_usd;
    return OK;
}

/* ---- the verdict ---- */

static void check_note(struct call *c, struct reflection *r, const char *text, bool truncated)
{
    const struct note_checked note = reflect_note_check(&c->arena, text, r->avoid, r->avoid_count, r->slots);
    if (note.verdict != NOTE_GOOD) {
        const char *cut = truncated ? "it was cut off at the token limit; " : "";
        set_outcome(c, r, "rejected", note_verdict_names[note.verdict],
                    arena_fmt(&c->arena, "%s%s", cut, note.detail ? note.detail : ""));
        return;
    }
    char *hash = arena_alloc(&c->arena, LESSONS_HASH_SIZE);
    lessons_hash(note.text, strlen(note.text), hash);
    r->lessons_text = note.text;
    r->content_hash = hash;
    set_outcome(c, r, "ran", NULL, NULL);
}

enum err reflection_ask(struct call *c, struct reflection *r)
{
    struct llm_answer answer = { 0 };
    if (reflection_model(c, r))
        TRY(ask_model(c, r, &answer));
    else
        TRY(ask_builtin(c, r, &answer.text));
    if (answer.text)
        check_note(c, r, answer.text, answer.truncated);
    return OK;
}

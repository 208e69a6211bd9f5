/* The lessons of a reflection: what a model or the built-in reflector makes of the trades, and whether it is
 * a note. */
#include <stdlib.h>
#include <string.h>

#include "core/base/line_text.h"
#include "core/base/time_text.h"
#include "core/base/utf8.h"
#include "core/reflect/lessons_hash.h"
#include "handlers/reflection/reflection_parts.h"
#include "server/config.h"
#include "server/log.h"
#include "server/remote/llm.h"
#include "server/worker.h"

enum { DETAIL_BYTES = 900, MODEL_CHARS = 100, LOGGED_CHARS = 300, BUILTIN_TURN_US = 1000 };
static const char builtin_name[] = "builtin";

/* ---- the trades ---- */

static double number_of(const struct rows *r, int row, const char *column)
{
    const char *text = rows_text(r, row, column);
    return text ? strtod(text, NULL) : 0;
}

static int64_t instant_of(struct arena *arena, const struct rows *r, int row, const char *column)
{
    int64_t us = 0;
    (void)time_text_parse(rows_time(arena, r, row, column), &us);
    return us;
}

static struct reflect_trade trade_of(struct arena *arena, const struct rows *r, int row)
{
    return (struct reflect_trade){
        .symbol = rows_text(r, row, "symbol"),
        .side = rows_text(r, row, "side"),
        .regime = rows_text(r, row, "entry_regime_tag"),
        .entry_us = instant_of(arena, r, row, "entry_tick_at"),
        .exit_us = instant_of(arena, r, row, "exit_tick_at"),
        .size_usd = number_of(r, row, "entry_size_usd"),
        .leverage = number_of(r, row, "entry_leverage"),
        .net_usd = number_of(r, row, "net_usd"),
        .fees_usd = number_of(r, row, "fees_usd"),
        .mfe_usd = number_of(r, row, "mfe_usd"),
        .mae_usd = number_of(r, row, "mae_usd"),
        .minutes = number_of(r, row, "holding_minutes"),
        .entry_reason = rows_text(r, row, "entry_reason"),
        .exit_reason = rows_text(r, row, "exit_reason"),
    };
}

static const char *time_of(struct arena *arena, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_short(us, text);
    return arena_text(arena, text);
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
    r->window_start = time_of(arena, first_us);
    r->window_end = time_of(arena, f->trades[0].exit_us);
}

/* The rules come as one text, between them a character that no stored text holds. */
static void set_avoid(struct arena *arena, struct reflection *r, const char *joined)
{
    size_t count = 1;
    if (!*joined)
        return;
    for (const char *p = joined; *p; p++)
        count += *p == '\x1f';
    r->avoid = arena_alloc(arena, count * sizeof *r->avoid);
    for (const char *at = joined; r->avoid_count < count; at += strlen(r->avoid[r->avoid_count++]) + 1)
        r->avoid[r->avoid_count] = arena_copy(arena, at, strcspn(at, "\x1f"));
}

static enum err read_trades(struct call *c, const struct reflection *r, struct reflect_facts *f)
{
    struct rows *found;
    TRY(db_rows_from(c, &REFLECTION_TRADES, reflection_params, r, &found));
    const size_t count = (size_t)rows_count(found);
    struct reflect_trade *trades = arena_alloc(&c->arena, (count + 1) * sizeof *trades);
    for (size_t i = 0; i < count; i++) {
        call_breathe(c); /* a thousand of them take a few milliseconds */
        trades[i] = trade_of(&c->arena, found, (int)i);
    }
    *f = (struct reflect_facts){
        .strategy = rows_text(r->state, 0, "strategy"),
        .avoid = r->avoid,
        .avoid_count = r->avoid_count,
        .lessons = rows_text(r->state, 0, "lessons_text"),
        .trades = trades,
        .count = count,
        .suppressed = r->slots,
    };
    return OK;
}

/* Keeps what is needed of the facts, in `arena`: those of the call are gone afterwards. */
typedef void keep_fn(struct call *c, struct arena *arena, struct reflection *r,
                     const struct reflect_facts *f);

/* A model may take minutes, and hundreds may be waited for: a thousand trades are not held so long. */
static enum err gather(struct call *c, struct reflection *r, keep_fn *keep)
{
    struct db_step step;
    struct reflect_facts facts;
    set_avoid(&c->arena, r, rows_text(r->state, 0, "avoid"));
    db_step_begin(c, &step);
    enum err err = read_trades(c, r, &facts);
    if (err == OK) {
        set_window(&step.arena, r, &facts);
        keep(c, &step.arena, r, &facts);
    } else if (c->problem.detail) {
        c->problem.detail = arena_text(&step.arena, c->problem.detail);
    }
    db_step_end(c, &step);
    rows_release(c, r->state);
    r->state = NULL;
    return err;
}

/* ---- the built-in reflector ---- */

/* Beside the loop: it computes for long. Whatever it looks at is its own. */
struct builtin {
    struct worker_job job;
    struct arena arena;
    struct reflect_trade *trades;
    size_t count;
    struct buf said;
    struct reflecting *at_work;
};

static bool builtin_step(struct worker_job *job)
{
    struct builtin *b = (struct builtin *)job; /* its first member */
    if (!b->at_work)
        b->at_work = reflect_begin(&b->said, b->trades, b->count);
    return reflect_step(b->at_work);
}

static void builtin_release(struct worker_job *job)
{
    struct builtin *b = (struct builtin *)job;
    arena_release(&b->arena);
    free(b);
}

static void builtin_keep(struct call *c, struct arena *arena, struct reflection *r,
                         const struct reflect_facts *f)
{
    (void)c, (void)arena; /* the worker may outlive the call */
    struct builtin *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->job.step = builtin_step;
    b->job.release = builtin_release;
    b->job.turn_us = BUILTIN_TURN_US;
    b->said.arena = &b->arena;
    b->count = f->count;
    b->trades = arena_alloc(&b->arena, (f->count + 1) * sizeof *b->trades);
    for (size_t i = 0; i < f->count; i++) {
        struct reflect_trade *t = &b->trades[i];
        *t = f->trades[i];
        t->symbol = arena_text(&b->arena, t->symbol);
        t->side = arena_text(&b->arena, t->side);
        t->regime = t->regime ? arena_text(&b->arena, t->regime) : NULL;
        t->entry_reason = t->exit_reason = NULL; /* it looks at the numbers */
    }
    r->builtin = b;
}

static enum err ask_builtin(struct call *c, struct reflection *r, const char **said)
{
    r->model_used = builtin_name;
    r->cost_usd = "0";
    TRY(gather(c, r, builtin_keep));
    struct builtin *b = r->builtin;
    TRY(worker_run(c, &b->job));
    *said = arena_text(&c->arena, buf_string(&b->said));
    builtin_release(&b->job);
    return OK;
}

/* ---- the model ---- */

const char *reflection_model(const struct call *c, const struct reflection *r)
{
    if (!llm_configured(c->loop))
        return NULL;
    return r->own_model ? r->own_model : c->loop->config->model_name;
}

static void prompt_keep(struct call *c, struct arena *arena, struct reflection *r,
                        const struct reflect_facts *f)
{
    call_breathe(c);
    const struct reflect_prompt made = reflect_prompt(&c->arena, f);
    r->prompt =
        (struct reflect_prompt){ arena_text(arena, made.system), arena_text(arena, made.user), made.tokens };
}

enum err reflection_prompt(struct call *c, struct reflection *r)
{
    return gather(c, r, prompt_keep);
}

/* Which failures are an outcome; all others are the request's own. */
static bool is_models(enum err err)
{
    return err == ERR_MODEL_FAILED || err == ERR_MODEL_TIMEOUT;
}

/* What others wrote, where it can end neither its line nor its quotes. */
static const char *in_one_line(struct call *c, const char *text, size_t most_chars)
{
    struct buf line = { .arena = &c->arena };
    line_text(&line, text, most_chars);
    return buf_string(&line);
}

/* As many as the tables can hold: nobody reads or writes more, whatever a server says. */
static int64_t tokens_said(int64_t count)
{
    return count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : count;
}

static void came_of(struct call *c, struct reflection *r, const char *what, const char *why,
                    const char *detail)
{
    r->came_of_it = what;
    r->why = why;
    r->detail = detail ? arena_copy(&c->arena, detail, utf8_cut(detail, strlen(detail), DETAIL_BYTES)) : NULL;
    if (why)
        log_event(LOG_WARN, "reflection",
                  "outcome=%s reason=%s deployment=%s model=\"%s\" request_id=%s why=\"%s\"", what, why,
                  r->id, r->model_used, c->request_id,
                  r->detail ? in_one_line(c, r->detail, LOGGED_CHARS) : "");
}

static enum err ask_model(struct call *c, struct reflection *r, struct llm_answer *answer)
{
    TRY(reflection_prompt(c, r));
    const struct llm_question question = { .system = r->prompt.system,
                                           .user = r->prompt.user,
                                           .model = r->own_model };
    r->model_used = in_one_line(c, reflection_model(c, r), MODEL_CHARS);
    enum err err = llm_ask(c, &question, answer);
    if (is_models(err)) {
        came_of(c, r, "model_failed", err_code(err), c->problem.detail);
        c->problem = (struct problem){ .arena = c->problem.arena };
        return OK;
    }
    TRY(err);
    const char *name = in_one_line(c, answer->model, MODEL_CHARS);
    if (*name)
        r->model_used = name;
    r->input_tokens = tokens_said(answer->tokens_in);
    r->output_tokens = tokens_said(answer->tokens_out);
    r->cost_usd = answer->cost_usd;
    return OK;
}

/* ---- the verdict ---- */

static void judge(struct call *c, struct reflection *r, const char *said, bool truncated)
{
    const struct note_checked note = reflect_note_check(&c->arena, said, r->avoid, r->avoid_count, r->slots);
    if (note.verdict != NOTE_GOOD) {
        const char *cut = truncated ? "it was cut off at the most tokens it may have; " : "";
        came_of(c, r, "rejected", note_verdict_names[note.verdict],
                arena_fmt(&c->arena, "%s%s", cut, note.detail ? note.detail : ""));
        return;
    }
    char *hash = arena_alloc(&c->arena, LESSONS_HASH_SIZE);
    lessons_hash(note.text, strlen(note.text), hash);
    r->lessons_text = note.text;
    r->content_hash = hash;
    came_of(c, r, "ran", NULL, NULL);
}

enum err reflection_ask(struct call *c, struct reflection *r)
{
    struct llm_answer answer = { 0 };
    if (reflection_model(c, r))
        TRY(ask_model(c, r, &answer));
    else
        TRY(ask_builtin(c, r, &answer.text));
    if (answer.text)
        judge(c, r, answer.text, answer.truncated);
    return OK;
}

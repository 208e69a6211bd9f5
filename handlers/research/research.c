/* The research step: reuses the last answer if it is still valid, else builds a prompt and stores the answer.
 */
#include "handlers/research/research.h"

#include "core/base/json_put.h"
#include "core/base/vector.h"
#include "core/episodic/provenance.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/reply.h"
#include "handlers/lesson.h"
#include "handlers/routes.h"
#include "server/embedder.h"

/* clang-format off */
#define R(from, kind, member, ...) FIELD(from, kind, struct research_in, member, __VA_ARGS__)
#define ENTRY(what, its_name, member, ...) \
    { .name = its_name, .from = FROM_BODY, .kind = (what), .offset = offsetof(struct research_in, entry.member), __VA_ARGS__ }
#define ASKED \
    ENTRY(KIND_LINE, "ticker", ticker, .required = true, .min = 1, .max = 64), \
    ENTRY(KIND_LINE, "task_type", task_type, .required = true, .min = 1, .max = 64), \
    SIGNALS_FIELD(struct research_in, new_signals), \
    R(FROM_BODY, KIND_INT, days_threshold, .min = 1, .max = 3650, .fallback = "14")
#define PREPARED ASKED, \
    ENTRY(KIND_TEXT, "question", question, .min = 1, .max = 4000), \
    ENTRY(KIND_TIME, "as_of", created_at, .fallback = "now"), \
    R(FROM_BODY, KIND_NUMBER, cost_usd, .min = 0, .max = 1000000), \
    R(FROM_BODY, KIND_TAGS, tags, .max = 13, .item_max = 64), \
    R(FROM_BODY, KIND_INT, k, .min = 0, .max = 20, .fallback = "5"), \
    R(FROM_BODY, KIND_INT, max_tokens, .min = 500, .max = 20000, .fallback = "4000")

static const struct field signals_field = SIGNALS_FIELD(struct research_in, new_signals);
static const struct field prepare_fields[] = { PREPARED, END_FIELDS };
static const struct field step_fields[] = {
    PREPARED,
    R(FROM_BODY, KIND_INT, max_answer_tokens, .min = 100, .max = 32000, .fallback = "2000"),
    END_FIELDS,
};
static const struct field commit_fields[] = {
    ASKED,
    ENTRY(KIND_TEXT, "question", question, .required = true, .min = 1, .max = 4000),
    ENTRY(KIND_TEXT, "answer", answer, .required = true, .min = 1, .max = 50000),
    ENTRY(KIND_NUMBER, "probability", probability, .required = true, .min = 0, .max = 1),
    ENTRY(KIND_NUMBER, "confidence", confidence, .min = 0, .max = 1),
    ENTRY(KIND_CHOICE, "source", source, .choices = provenance_names, .fallback = PROVENANCE_DEFAULT),
    ENTRY(KIND_TEXTS, "source_citations", source_citations, .max = 64, .item_max = 1000),
    ENTRY(KIND_TIME, "created_at", created_at, .fallback = "now"),
    ENTRY(KIND_INT, "ttl_seconds", ttl_seconds, .min = 1, .max = 315360000),
    R(FROM_BODY, KIND_UUID, prior_id),
    END_FIELDS,
};

/* The parameters of the statements, for all routes. */
#define OF_ENTRY(what, its_name, member) { .name = its_name, .from = COMPUTED, .kind = (what), .offset = offsetof(struct research_in, entry.member) }
static const struct field memory_fields[] = {
    OF_ENTRY(KIND_LINE, "ticker", ticker), OF_ENTRY(KIND_LINE, "other_than", ticker), OF_ENTRY(KIND_LINE, "task_type", task_type),
    OF_ENTRY(KIND_TIME, "as_of", created_at),
    R(COMPUTED, KIND_INT, days_threshold), R(COMPUTED, KIND_INT, k), R(COMPUTED, KIND_UUID, prior_id),
    R(COMPUTED, KIND_TEXT, query_text), R(COMPUTED, KIND_TEXT, query_halfvec), R(COMPUTED, KIND_LINE, query_model),
    R(COMPUTED, KIND_INT, width), R(COMPUTED, KIND_INT, query_dim),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(analogous, id, score, ticker, created_at, question, answer, probability, confidence, pending);
QUERY(newest_prior, EPISODE_PRIOR, memory_fields, READS(prior_row));
QUERY(named_prior, RESEARCH_PRIOR, memory_fields, READS(prior_row));
QUERY(research_cases, RESEARCH_CASES, memory_fields, READS(analogous));
QUERY(research_cases_by_words, RESEARCH_CASES_BY_WORDS, memory_fields, READS(analogous));

/* ---- the prior ---- */

/* The current regime, as the regime of the new entry. */
static struct objects regime_of(struct arena *arena, const struct regime_tags *tags)
{
    struct regime_in *items = arena_alloc(arena, (tags->count + 1) * sizeof *items);
    for (size_t i = 0; i < tags->count; i++) {
        const struct regime_tag *tag = &tags->items[i];
        struct buf value = { .arena = arena };
        if (tag->kind == REGIME_TAG_TEXT)
            buf_json_string(&value, tag->text);
        else
            buf_text(&value, tag->text);
        items[i] = (struct regime_in){ tag->name, buf_string(&value) };
    }
    return (struct objects){ tags->count, items };
}

static enum err take_signals(struct call *c, struct research_in *in)
{
    const char *json = field_ref_value(&(struct field_ref){ .field = &signals_field }, in, &c->arena);
    in->signals_json = json ? json : "{}";
    TRY(episodic_rerun_signals(c, "new_signals", &in->new_signals, &in->signals));
    in->entry.regime_tag = regime_of(&c->arena, &in->signals.regime);
    return OK;
}

/* Finds the newest answer to the same kind of question, or the one named by prior_id. */
static enum err find_prior(struct call *c, struct research_in *in)
{
    struct rows *r;
    TRY(take_signals(c, in));
    TRY(query_rows(c, in->prior_id ? &named_prior : &newest_prior, in, NULL, &r));
    if (rows_count(r) == 0)
        return problem_field(&c->problem, "prior_id", FAULT_UNKNOWN_REFERENCE,
                             "is not an entry of this ticker and task_type that was usable at that time");
    in->prior = r;
    in->rerun = episodic_prior_decide(c, r, &in->signals);
    return OK;
}

/* Counts the reuse, and replies with the prior as it was before that. */
static enum err reuse_tx(struct call *c, void *arg)
{
    const struct research_in *in = arg;
    TRY(episodic_prior_reuse(c, in->prior, in->entry.created_at, in->cost_usd));
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"source\":\"cached\"");
    json_put_text(out, "prior_id", rows_text(in->prior, 0, &prior_row.id));
    json_put_raw(out, "probability", rows_text(in->prior, 0, &prior_row.probability));
    json_put_text(out, "answer", rows_text(in->prior, 0, &prior_row.answer));
    buf_json_key(out, "prior");
    rows_json(out, in->prior, 0);
    json_put_raw(out, "prior_age_days", rows_text(in->prior, 0, &prior_row._age_days));
    buf_char(out, '}');
    return OK;
}

/* ---- the prompt ---- */

/* The tags of the lessons for this kind of research. */
static struct texts lesson_tags(struct call *c, const struct research_in *in)
{
    const char **items = arena_alloc(&c->arena, (RESEARCH_TAGS + in->tags.count) * sizeof *items);
    research_tags(&c->arena, in->entry.task_type, items);
    for (size_t i = 0; i < in->tags.count; i++)
        items[RESEARCH_TAGS + i] = in->tags.items[i];
    return (struct texts){ RESEARCH_TAGS + in->tags.count, items };
}

/* If nothing was found, there is no row, or one without an id. */
static enum err query_cases(struct call *c, const struct query *q, struct research_in *in)
{
    struct rows *r;
    TRY(query_rows(c, q, in, NULL, &r));
    in->cases = r;
    in->case_count = rows_count(r) && rows_text(r, 0, &analogous.id) ? (size_t)rows_count(r) : 0;
    in->pending = rows_count(r) ? row_int(r, 0, &analogous.pending, 0) : 0;
    return OK;
}

static enum err cases_by_words(struct call *c, struct research_in *in, const char *why)
{
    in->degraded = why;
    return query_cases(c, &research_cases_by_words, in);
}

/* Finds cases by vector; by words if the question or all entries lack one. */
static enum err find_cases(struct call *c, struct research_in *in)
{
    const struct embedder_space own = embedder_space(c->loop);
    float *vector = arena_alloc(&c->arena, own.dim * sizeof *vector);
    enum err err = embedder_embed_one(&c->task, in->query_text, vector);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        return cases_by_words(c, in, "embedder_unavailable");
    TRY(err);
    struct buf query = { .arena = &c->arena };
    in->query_dim = (int64_t)own.dim;
    in->width = vector_column(own.dim);
    in->query_model = own.model;
    vector_text(&query, vector, own.dim, (size_t)in->width);
    in->query_halfvec = buf_string(&query);
    TRY(query_cases(c, &research_cases, in));
    if (in->case_count)
        return OK;
    const int64_t pending = in->pending;
    TRY(cases_by_words(c, in, "no_vector"));
    if (!in->case_count) { /* nothing was found by words either */
        in->degraded = NULL;
        in->pending = pending;
    }
    return OK;
}

static const struct research_case *cases_of(struct call *c, const struct rows *r, size_t count)
{
    struct research_case *cases = arena_alloc(&c->arena, (count + 1) * sizeof *cases);
    for (int row = 0; row < (int)count; row++)
        cases[row] = (struct research_case){
            .ticker = rows_text(r, row, &analogous.ticker),
            .created_at = rows_time(r, row, &analogous.created_at, &c->arena),
            .question = rows_text(r, row, &analogous.question),
            .answer = rows_text(r, row, &analogous.answer),
            .probability = rows_text(r, row, &analogous.probability),
            .confidence = rows_text(r, row, &analogous.confidence),
        };
    return cases;
}

static const char *const *takeaways_of(struct call *c, const struct rows *r)
{
    const char **takeaways = arena_alloc(&c->arena, ((size_t)rows_count(r) + 1) * sizeof *takeaways);
    for (int row = 0; row < rows_count(r); row++)
        takeaways[row] = rows_text(r, row, &lesson_used.takeaway);
    return takeaways;
}

static enum err make_prompt(struct call *c, struct research_in *in)
{
    struct research_question q = {
        .ticker = in->entry.ticker,
        .task_type = in->entry.task_type,
        .question = in->entry.question,
        .signals = in->signals_json,
        .wants_cases = in->k > 0,
        .max_tokens = (size_t)in->max_tokens,
    };
    struct rows *lessons;
    in->query_text = research_query(&c->arena, &q, rows_text(in->prior, 0, &prior_row.question));
    TRY(lesson_list_active(c, lesson_tags(c, in), in->entry.created_at, &lessons));
    in->lessons = lessons;
    q.takeaways = takeaways_of(c, lessons);
    q.takeaway_count = (size_t)rows_count(lessons);
    if (in->k > 0) {
        TRY(find_cases(c, in));
        reply_lacks(c, in->pending); /* a prompt without them changes when they have vectors */
        q.cases = cases_of(c, in->cases, in->case_count);
        q.case_count = in->case_count;
        q.pending = in->pending;
    }
    if (!research_prompt(&c->arena, &q, &in->prompt))
        return problem_field(&c->problem, "max_tokens", FAULT_OUT_OF_RANGE,
                             "is too small for the question and the signals: they need %zu",
                             in->prompt.tokens);
    return OK;
}

/* ---- responses ---- */

/* The lessons and cases in the prompt. */
static void put_memory(struct buf *out, const struct research_in *in)
{
    buf_json_key(out, "lesson_ids");
    buf_char(out, '[');
    for (size_t i = in->prompt.lessons; i > 0; i--) /* in the order of the text: newest last */
        buf_fmt(out, "%s\"%s\"", i < in->prompt.lessons ? "," : "",
                rows_text(in->lessons, (int)i - 1, &lesson_used.id));
    buf_char(out, ']');
    buf_json_key(out, "analogous");
    buf_char(out, '[');
    for (int i = 0; i < (int)in->prompt.cases; i++)
        buf_fmt(out, "%s{\"id\":\"%s\",\"score\":%s}", i ? "," : "", rows_text(in->cases, i, &analogous.id),
                rows_text(in->cases, i, &analogous.score));
    buf_char(out, ']');
    json_put_text(out, "degraded", in->degraded);
    json_put_int(out, "pending", in->pending);
}

static void put_prompt(struct call *c, const struct research_in *in)
{
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"source\":\"fresh\"");
    episodic_prior_json(out, in->prior, &in->rerun);
    json_put_text(out, "system", in->prompt.system);
    json_put_text(out, "user", in->prompt.user);
    json_put_int(out, "tokens", (int64_t)in->prompt.tokens);
    put_memory(out, in);
    buf_char(out, '}');
}

/* The stored entry and lesson. */
static void put_outcome(struct buf *out, const struct research_in *in, const struct research_outcome *o)
{
    buf_json_key(out, "episode");
    episodic_json(out, &in->episode);
    json_put_bool(out, "duplicate", in->episode.known);
    json_put_text(out, "prior_id", o->prior_id);
    json_put_raw(out, "shift", o->shift);
    buf_json_key(out, "lesson");
    if (o->lesson)
        rows_json(out, o->lesson, 0);
    else
        buf_text(out, "null");
}

static struct buf *begin_stored(struct call *c, const struct research_in *in)
{
    struct buf *out = call_reply_json(c, in->episode.known ? 200 : 201);
    c->reply.location = arena_fmt(&c->arena, "/v1/episodic/%s", episodic_id(&in->episode));
    return out;
}

static void put_committed(struct call *c, const struct research_in *in, const struct research_outcome *o)
{
    struct buf *out = begin_stored(c, in);
    buf_char(out, '{');
    put_outcome(out, in, o);
    buf_char(out, '}');
}

static void put_stepped(struct call *c, const struct research_in *in, const struct research_outcome *o)
{
    struct buf *out = begin_stored(c, in);
    buf_text(out, "{\"source\":\"fresh\"");
    episodic_prior_json(out, in->prior, &in->rerun);
    put_outcome(out, in, o);
    json_put_text(out, "model_used", in->model_answer.model);
    json_put_int(out, "tokens_in", in->model_answer.tokens_in);
    json_put_int(out, "tokens_out", in->model_answer.tokens_out);
    json_put_raw(out, "cost_usd", in->model_answer.cost_usd);
    put_memory(out, in);
    buf_char(out, '}');
}

/* ---- the three requests ---- */

static enum err research_prepare(struct call *c)
{
    struct research_in *in = c->in;
    TRY(find_prior(c, in));
    if (!in->rerun.reasons)
        return query_tx(c, reuse_tx, in);
    TRY(make_prompt(c, in));
    put_prompt(c, in);
    return OK;
}

static enum err research_commit(struct call *c)
{
    struct research_in *in = c->in;
    in->reply = put_committed;
    TRY(find_prior(c, in));
    return research_store(c, in);
}

/* Nothing is written before the answer of the model is validated. */
static enum err research_step(struct call *c)
{
    struct research_in *in = c->in;
    in->reply = put_stepped;
    in->entry.source = PROVENANCE_DEFAULT;
    in->entry.ttl_seconds = FIELD_NO_INT;
    TRY(find_prior(c, in));
    if (!in->rerun.reasons)
        return query_tx(c, reuse_tx, in);
    if (!llm_configured(c->loop))
        return problem_set(&c->problem, ERR_MODEL_NOT_CONFIGURED,
                           "the question needs a fresh answer and no model is configured: see --model-api");
    TRY(make_prompt(c, in));
    const struct llm_question question = { .system = in->prompt.system,
                                           .user = in->prompt.user,
                                           .max_tokens = in->max_answer_tokens };
    TRY(llm_ask(&c->task, &question, &in->model_answer));
    TRY(research_read_answer(c, &in->model_answer, &in->entry));
    return research_store(c, in);
}

#define IN(table) INPUT(table, struct research_in)

const struct route research_routes[] = {
    { POST, "/v1/research/prepare", research_prepare, IN(prepare_fields), .role = ROLE_RESEARCHER,
      .waits = true, .models = true },
    { POST, "/v1/research/commit", research_commit, IN(commit_fields), .role = ROLE_RESEARCHER, .waits = true,
      .models = true },
    { POST, "/v1/research/step", research_step, IN(step_fields), .role = ROLE_RESEARCHER, .waits = true,
      .models = true },
    END_ROUTES,
};

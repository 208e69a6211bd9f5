/* Parses the answer of a model to a research prompt, as strictly as a request body. */
#include "core/base/buf.h"
#include "handlers/research/research.h"
#include "server/config.h"

enum { FAULTS_NAMED = 10 };

/* clang-format off */
#define A(kind, member, ...) FIELD(FROM_BODY, kind, struct episode_in, member, __VA_ARGS__)
static const struct field answer_fields[] = {
    A(KIND_TEXT, question, .required = true, .min = 1, .max = 4000),
    A(KIND_TEXT, answer, .required = true, .min = 1, .max = 50000),
    A(KIND_NUMBER, probability, .required = true, .min = 0, .max = 1),
    A(KIND_NUMBER, confidence, .required = true, .min = 0, .max = 1),
    A(KIND_TEXTS, source_citations, .max = 64, .item_max = 1000),
    END_FIELDS,
};
/* clang-format on */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void trim(const char **text, size_t *len)
{
    while (*len && is_space(**text))
        ++*text, --*len;
    while (*len && is_space((*text)[*len - 1]))
        --*len;
}

/* Models often wrap the JSON in "```json", even when told not to. */
static void strip_code_fence(const char **text, size_t *len)
{
    static const char fence[] = "```";
    const size_t width = sizeof fence - 1;
    const char *line_end = memchr(*text, '\n', *len);
    if (!line_end || *len < 2 * width || memcmp(*text, fence, width) != 0 ||
        memcmp(*text + *len - width, fence, width) != 0)
        return;
    *len -= (size_t)(line_end - *text) + width;
    *text = line_end;
    trim(text, len);
}

/* "probability: must be from 0 to 1; answer: is required". */
static const char *faults_text(struct arena *arena, const struct problem *p)
{
    struct buf out = { .arena = arena };
    int named = 0;
    for (const struct bad_field *bad = p->first; bad && named < FAULTS_NAMED; bad = bad->next, named++)
        buf_fmt(&out, "%s%s: %s", named ? "; " : "", bad->field, bad->detail);
    if (p->count > named)
        buf_fmt(&out, "; and %d more", p->count - named);
    return buf_string(&out);
}

static enum err invalid(struct call *c, const struct llm_answer *model_answer, const char *why)
{
    return problem_set(&c->problem, ERR_MODEL_ANSWER_INVALID, "%s%s",
                       model_answer->truncated ? "it was cut off at the token limit; " : "", why);
}

enum err research_read_answer(struct call *c, const struct llm_answer *model_answer, struct episode_in *entry)
{
    struct problem p = { .arena = &c->arena, .about = "answer" };
    struct episode_in in = { 0 };
    const char *text = model_answer->text;
    size_t len = strlen(text);
    trim(&text, &len);
    strip_code_fence(&text, &len);
    const struct field_input body = {
        .body = text, .body_len = len, .depth_limit = (int)c->loop->config->max_json_depth, .now = c->now
    };
    enum err err = field_decode(answer_fields, &body, &c->arena, &in, &p);
    if (err == ERR_INVALID_FIELDS)
        return invalid(c, model_answer, faults_text(&c->arena, &p));
    if (err != OK)
        return invalid(
            c, model_answer,
            arena_fmt(&c->arena, "%s: %s", problem_code(err), p.detail ? p.detail : problem_title(err)));
    if (!entry->question) /* keep the question of the request */
        entry->question = in.question;
    entry->answer = in.answer;
    entry->probability = in.probability;
    entry->confidence = in.confidence;
    entry->source_citations = in.source_citations;
    return OK;
}

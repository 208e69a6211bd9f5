/* Shared by the parts of a research step: the question, what memory knows about it, and the answer. */
#ifndef DAYBOOK_HANDLERS_RESEARCH_RESEARCH_H
#define DAYBOOK_HANDLERS_RESEARCH_RESEARCH_H

#include "core/research/research.h"
#include "handlers/episodic/episodic.h"
#include "server/remote/llm.h"

/* The outcome of storing an answer. */
struct research_outcome {
    const char *prior_id, *shift; /* NULL: no prior, or the entry existed already */
    const struct rows *lesson;    /* NULL: none was written */
};

/* The input of all research routes, and the state while one is processed. */
struct research_in {
    struct episode_in entry; /* created_at is the as_of of the whole request */
    const char *cost_usd, *prior_id;
    struct objects new_signals; /* of struct regime_in */
    struct texts tags;
    int64_t days_threshold, k, max_tokens, max_answer_tokens;

    /* parameters of the search for analogous cases */
    const char *query_text, *query_halfvec, *query_model;
    int64_t width, query_dim;

    const char *signals_json; /* all of new_signals */
    struct rerun_signals signals;
    const struct rows *prior; /* one row; see episodic_prior_exists */
    struct rerun rerun;
    struct research_prompt prompt;
    const struct rows *lessons, *cases;
    size_t case_count;
    const char *degraded; /* why the cases were not compared by vector, or NULL */
    int64_t pending;      /* candidates that were not compared because they have no vector yet */
    struct llm_answer model_answer;
    struct episode episode;
    void (*reply)(struct call *c, const struct research_in *in, const struct research_outcome *o);
};

/* Parses the answer of a model into the entry. ERR_MODEL_ANSWER_INVALID lists everything wrong with it. */
enum err research_read_answer(struct call *c, const struct llm_answer *model_answer,
                              struct episode_in *entry) must_check;

/* Stores the entry and, if its probability moved far from the prior, a lesson, in one transaction. in->reply
 * builds the response inside it. An entry that exists already stays unchanged and gives no lesson. */
enum err research_store(struct call *c, struct research_in *in) must_check;

#endif

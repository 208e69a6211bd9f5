/* What the parts of a research step share: what was asked, what the memory says about it, and the answer. */
#ifndef DAYBOOK_HANDLERS_RESEARCH_RESEARCH_H
#define DAYBOOK_HANDLERS_RESEARCH_RESEARCH_H

#include "core/research/research.h"
#include "handlers/episodic/episodic.h"
#include "server/remote/llm.h"

/* What storing an answer came to. */
struct research_outcome {
    const char *prior_id, *shift; /* NULL: there is no prior, or the entry was there before */
    const struct rows *lesson;    /* NULL: none was written */
};

/* Whatever a request about research may carry, and what becomes of it. */
struct research_in {
    struct episode_in entry; /* created_at is the instant that all of it is for */
    const char *cost_usd, *prior_id;
    struct objects new_signals; /* of struct regime_in */
    struct texts tags;
    int64_t days_threshold, k, max_tokens, max_answer_tokens;

    /* for the statement of the analogous cases */
    const char *near, *near_model, *near_text;
    int64_t near_column, near_dim;

    const char *signals_json; /* all of new_signals */
    struct rerun_signals signals;
    const struct rows *prior; /* one row; see prior_found */
    struct rerun rerun;
    struct research_prompt prompt;
    const struct rows *lessons, *cases;
    const char *degraded; /* why the cases were not compared by meaning; NULL: they were */
    struct llm_answer said;
    struct episode episode;
    void (*reply)(struct call *c, const struct research_in *in, const struct research_outcome *o);
};

/* A model's answer into the entry; ERR_MODEL_ANSWER_INVALID says everything that is wrong with it. */
enum err research_read_answer(struct call *c, const struct llm_answer *said,
                              struct episode_in *entry) must_check;

/* Stores the entry and, when it moved far from the prior, a lesson: both or neither. in->reply makes the
 * answer, in the same transaction. An entry that was there before is left as it is, and says no lesson. */
enum err research_store(struct call *c, struct research_in *in) must_check;

#endif

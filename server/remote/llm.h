/* The language model of the configuration: one question, one answer. */
#ifndef DAYBOOK_SERVER_REMOTE_LLM_H
#define DAYBOOK_SERVER_REMOTE_LLM_H

#include "server/task.h"

struct llm_question {
    const char *system, *user;
    const char *model;  /* NULL: that of the configuration */
    int64_t max_tokens; /* 0: those of the configuration, which are also the most */
};

struct llm_answer {
    const char *text, *model;
    int64_t tokens_in, tokens_out;
    bool truncated;       /* it ended because it had reached max_tokens */
    const char *cost_usd; /* a decimal number; NULL: the prices are not known */
};

/* For each loop. NULL: no model is configured; the settings have passed remote_check. */
struct llm *llm_open(const struct loop *l);
void llm_close(struct llm *m);

bool llm_configured(const struct loop *l);

/* Waits for the answer, without holding up the loop, at most model_timeout_ms with all repetitions.
 * ERR_MODEL_NOT_CONFIGURED, ERR_MODEL_TIMEOUT, ERR_MODEL_FAILED (with what happened in the problem's detail).
 */
enum err llm_ask(struct task *t, const struct llm_question *question, struct llm_answer *answer) must_check;

#endif

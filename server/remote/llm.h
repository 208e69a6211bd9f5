/* The configured language model: one prompt, one answer. */
#ifndef DAYBOOK_SERVER_REMOTE_LLM_H
#define DAYBOOK_SERVER_REMOTE_LLM_H

#include "server/task.h"

struct llm_question {
    const char *system, *user;
    const char *model;  /* NULL: the configured model */
    int64_t max_tokens; /* 0: model_max_tokens, which is also the maximum */
};

struct llm_answer {
    const char *text, *model;
    int64_t tokens_in, tokens_out;
    bool truncated;       /* the answer reached max_tokens */
    const char *cost_usd; /* a decimal number; NULL: the price is unknown */
};

/* One per loop. NULL: no model is configured. The settings must have passed remote_check. */
struct llm *llm_open(const struct loop *l);
void llm_close(struct llm *m);

bool llm_configured(const struct loop *l);

/* Waits for the answer without blocking the loop, at most model_timeout_ms including retries. Fails with
 * ERR_MODEL_NOT_CONFIGURED, ERR_MODEL_TIMEOUT or ERR_MODEL_FAILED; the problem's detail has the reason. */
enum err llm_ask(struct task *t, const struct llm_question *question, struct llm_answer *answer) must_check;

#endif

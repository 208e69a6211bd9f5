/* Requests to other servers, with retries. */
#ifndef DAYBOOK_SERVER_REMOTE_RETRY_H
#define DAYBOOK_SERVER_REMOTE_RETRY_H

#include "server/remote/remote.h"

struct retry_policy {
    int tries;                 /* maximum number of tries */
    int64_t first_ms, most_ms; /* first pause; it doubles after each try, up to most_ms */
};

/* The pause before the next try; -1: do not retry. Retries 429, 5xx, and refused or lost connections, if the
 * pause (or a longer Retry-After) leaves enough time. `tries`: the tries so far. `random`: any number, for
 * the jitter. */
int64_t retry_pause_ms(const struct retry_policy *policy, const struct remote_answer *answer, int tries,
                       int64_t left_ms, uint32_t random);

/* remote_post with retries, within request->limit_ms including pauses. *tries is valid even if the task was
 * cancelled. */
enum err retry_post(struct task *t, const struct remote_request *request, const struct retry_policy *policy,
                    struct remote_answer *answer, int *tries) must_check;

#endif

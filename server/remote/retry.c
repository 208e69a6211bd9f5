/* Requests to other servers, with retries. */
#include "server/remote/retry.h"

enum { MIN_TRY_MS = 50 }; /* do not start a try with less time than this */

static bool is_retryable(const struct remote_answer *a)
{
    switch (a->outcome) {
    case REMOTE_ANSWERED:
        return a->status == 429 || a->status >= 500;
    case REMOTE_UNREACHABLE:
    case REMOTE_LOST:
        return true;
    case REMOTE_TIMEOUT:
    case REMOTE_TOO_LARGE:
    case REMOTE_BROKEN:
        break;
    }
    return false;
}

int64_t retry_pause_ms(const struct retry_policy *policy, const struct remote_answer *answer, int tries,
                       int64_t left_ms, uint32_t random)
{
    if (tries >= policy->tries || !is_retryable(answer))
        return -1;
    int64_t pause = policy->first_ms;
    for (int i = 1; i < tries && pause < policy->most_ms; i++)
        pause *= 2;
    if (pause > policy->most_ms)
        pause = policy->most_ms;
    /* Half of the pause is random, so that clients that failed together do not retry together. */
    int64_t jitter = (int64_t)((uint64_t)(pause - pause / 2) * random >> 32);
    int64_t retry_after_ms = answer->outcome == REMOTE_ANSWERED ? answer->retry_after_ms : -1;
    pause = (retry_after_ms > pause / 2 ? retry_after_ms : pause / 2) + jitter;
    return pause + MIN_TRY_MS <= left_ms ? pause : -1;
}

enum err retry_post(struct task *t, const struct remote_request *request, const struct retry_policy *policy,
                    struct remote_answer *answer, int *tries)
{
    int64_t until_us = loop_clock_us() + request->limit_ms * 1000;
    struct remote_request once = *request;
    for (*tries = 1;; ++*tries) {
        TRY(remote_post(t, &once, answer));
        int64_t left_ms = (until_us - loop_clock_us()) / 1000;
        int64_t pause_ms = retry_pause_ms(policy, answer, *tries, left_ms, remote_random(t->loop->remote));
        if (pause_ms < 0)
            return OK;
        TRY(remote_pause(t, pause_ms));
        once.limit_ms = (until_us - loop_clock_us()) / 1000;
        if (once.limit_ms < 1)
            once.limit_ms = 1; /* 0 would mean no limit */
    }
}

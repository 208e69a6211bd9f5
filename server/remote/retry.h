/* Requests to other servers that are repeated while that may help. */
#ifndef DAYBOOK_SERVER_REMOTE_RETRY_H
#define DAYBOOK_SERVER_REMOTE_RETRY_H

#include "server/remote/remote.h"

struct retry_policy {
    int tries;                 /* at most */
    int64_t first_ms, most_ms; /* the pause after the first try; each next one is twice as long, up to this */
};

/* How long to wait before the next try; -1: there is none. Only what another try may mend is repeated: 429,
 * 5xx, and connections that were refused or lost; and only if the pause, and the one that the server asks
 * for, leaves time for it. `tries`: how many there were. `random`: any number, for the jitter. */
int64_t retry_pause_ms(const struct retry_policy *policy, const struct remote_answer *answer, int tries,
                       int64_t left_ms, uint32_t random);

/* remote_post within request->limit_ms in all, pauses included. `tries` counts, also when the task may not
 * wait any longer. */
enum err retry_post(struct task *t, const struct remote_request *request, const struct retry_policy *policy,
                    struct remote_answer *answer, int *tries) must_check;

#endif

/* Runs the built-in embedder on the worker of a loop. */
#ifndef DAYBOOK_SERVER_EMBED_WORKER_H
#define DAYBOOK_SERVER_EMBED_WORKER_H

#include "core/embed/embed.h"
#include "server/task.h"

struct embed_worker;

/* One per loop; call it before the worker's first job. The first worker checks the weights. NULL: no memory.
 */
struct embed_worker *embed_worker_open(struct loop *loop);
/* Call it after worker_close, which ends pending requests. */
void embed_worker_close(struct embed_worker *w);

/* Embeds each text into EMBED_DIM numbers of `out`, in the space EMBED_MODEL. Waits without blocking
 * the loop. Tasks take turns, one text each. The texts are copied, and `out` is written only if this returns
 * OK. ERR_EMBEDDER_UNAVAILABLE: the weights are damaged. Any other error: the task was cancelled. */
enum err embed_worker_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;

struct embed_worker_stats {
    int64_t queued; /* texts queued or in work */
    int64_t texts;  /* embedded since the start */
    int64_t us;     /* time spent on them */
};

void embed_worker_stats(const struct embed_worker *w, struct embed_worker_stats *out);

#endif

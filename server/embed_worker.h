/* The built-in embedder of one loop: what its worker does for texts. */
#ifndef DAYBOOK_SERVER_EMBED_WORKER_H
#define DAYBOOK_SERVER_EMBED_WORKER_H

#include "core/embed/embed.h"
#include "server/task.h"

struct embed_worker;

/* One for each loop, on its worker, which has had no job yet. The weights are checked once, by the first of
 * the workers. NULL: no memory. */
struct embed_worker *embed_worker_open(struct loop *loop);
/* After worker_close, which has ended those that still waited. */
void embed_worker_close(struct embed_worker *w);

/* Embeds each text into EMBED_DIM numbers of `out`, in the space EMBED_MODEL. Waits, without holding up the
 * loop; tasks take turns, a text each. The texts are copied, and `out` is written only when this returns OK.
 * ERR_EMBEDDER_UNAVAILABLE: the weights are damaged. Others: why the task may not wait any longer. */
enum err embed_worker_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;

struct embed_worker_stats {
    int64_t queued; /* texts that wait or are being embedded */
    int64_t texts;  /* embedded since the start */
    int64_t us;     /* that this took */
};

void embed_worker_stats(const struct embed_worker *w, struct embed_worker_stats *out);

#endif

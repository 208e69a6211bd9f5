/* The embedder of the service: the built-in one, or the endpoint of the configuration. */
#ifndef DAYBOOK_SERVER_EMBEDDER_H
#define DAYBOOK_SERVER_EMBEDDER_H

#include "server/task.h"

/* The space that its vectors are in: they are compared with those of the same model and dimension only. */
struct embedder_space {
    const char *model;
    size_t dim;
};

struct embedder_space embedder_space(const struct loop *l);

/* "builtin" or "endpoint". */
const char *embedder_kind(const struct loop *l);
/* False: it would fail at once, as far as this loop knows. */
bool embedder_available(const struct loop *l);

/* Embeds each text: `out` takes count * dim numbers, each vector of length 1; a text that an endpoint refuses
 * at any length, though it takes others, gets zeros instead. Waits, without holding up the loop.
 * ERR_EMBEDDER_UNAVAILABLE: not now; why is in the log. Any other error: the task may not wait any longer. */
enum err embedder_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;
/* True: the text got its vector. */
bool embedder_took(const float *vector, size_t dim);
/* One text, which is ERR_EMBEDDER_UNAVAILABLE too when it is refused. */
enum err embedder_embed_one(struct task *t, const char *text, float *out) must_check;

#endif

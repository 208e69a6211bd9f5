/* The embedder of the service: the built-in one, or the endpoint of the configuration. */
#ifndef DAYBOOK_SERVER_EMBEDDER_H
#define DAYBOOK_SERVER_EMBEDDER_H

#include "server/task.h"

/* The model and dimension of its vectors. Only vectors of the same space are compared. */
struct embedder_space {
    const char *model;
    size_t dim;
};

struct embedder_space embedder_space(const struct loop *l);

/* "builtin" or "endpoint". */
const char *embedder_kind(const struct loop *l);
/* False: this loop knows that the endpoint is down. */
bool embedder_available(const struct loop *l);

/* Embeds each text: `out` takes count * dim numbers, each vector of length 1. A text that the endpoint
 * rejects at any length gets zeros. Waits without blocking the loop. ERR_EMBEDDER_UNAVAILABLE: the reason is
 * in the log. Any other error: the task was cancelled. */
enum err embedder_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;
/* False: the text was rejected. */
bool embedder_has_vector(const float *vector, size_t dim);
/* One text; ERR_EMBEDDER_UNAVAILABLE if it is rejected. */
enum err embedder_embed_one(struct task *t, const char *text, float *out) must_check;

/* A stored thing whose text is embedded. */
struct embedder_item {
    const char *id, *text;
    bool rejected; /* set by embedder_embed_items */
};
/* Embeds the items. *vectors becomes the JSON that statements store: a list of {id, width, vector}, without
 * the rejected items. */
enum err embedder_embed_items(struct task *t, struct arena *arena, struct embedder_item *items, size_t count,
                              const char **vectors) must_check;

#endif

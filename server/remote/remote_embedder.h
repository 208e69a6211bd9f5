/* The configured embedding endpoint. */
#ifndef DAYBOOK_SERVER_REMOTE_REMOTE_EMBEDDER_H
#define DAYBOOK_SERVER_REMOTE_REMOTE_EMBEDDER_H

#include "server/task.h"

/* One per loop. NULL: none is configured. The settings must have passed remote_check. */
struct remote_embedder *remote_embedder_open(const struct loop *l);
void remote_embedder_close(struct remote_embedder *e);

/* False while the circuit breaker is open: a call would fail at once. */
bool remote_embedder_available(const struct loop *l);

/* See embedder_embed. */
enum err remote_embedder_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;

#endif

/* The embedding endpoint of the configuration. */
#ifndef DAYBOOK_SERVER_REMOTE_EMBEDDER_H
#define DAYBOOK_SERVER_REMOTE_EMBEDDER_H

#include "server/task.h"

/* For each loop. NULL: none is configured; the settings have passed remote_check. */
struct remote_embedder *remote_embedder_open(const struct loop *l);
void remote_embedder_close(struct remote_embedder *e);

/* False while its circuit is open: it would fail at once. */
bool remote_embedder_available(const struct loop *l);

/* As embedder_embed. */
enum err remote_embedder_embed(struct task *t, const char *const *texts, size_t count, float *out) must_check;

#endif

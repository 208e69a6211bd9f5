/* The embedder of the service: the built-in one, or the endpoint of the configuration. */
#include "server/embedder.h"

#include <string.h>

#include "core/base/hash.h"
#include "server/config.h"
#include "server/embed_worker.h"
#include "server/remote/embedder.h"

struct embedder_space embedder_space(const struct loop *l)
{
    if (!l->embedder)
        return (struct embedder_space){ EMBED_MODEL, EMBED_DIM };
    return (struct embedder_space){ l->config->embedding_model, (size_t)l->config->embedding_dimension };
}

const char *embedder_kind(const struct loop *l)
{
    return l->embedder ? "endpoint" : "builtin";
}

bool embedder_available(const struct loop *l)
{
    return !l->embedder || remote_embedder_available(l);
}

enum err embedder_embed(struct call *c, const char *const *texts, size_t count, float *out)
{
    if (c->loop->embedder)
        return remote_embedder_embed(c, texts, count, out);
    return c->loop->embed_worker ? embed_worker_embed(c, texts, count, out) : ERR_SHUTTING_DOWN;
}

bool embedder_took(const float *vector, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        if (vector[i] != 0)
            return true;
    return false;
}

static uint64_t owner_of(const struct call *c)
{
    return hash_bytes(c->owner, strlen(c->owner), HASH_SEED);
}

bool embedder_fills(const struct call *c)
{
    return c->loop->now_us >= c->loop->fills_after_us || c->loop->fills_not_of != owner_of(c);
}

void embedder_fill_refused(struct call *c)
{
    c->loop->fills_after_us = c->loop->now_us + INT64_C(60000000);
    c->loop->fills_not_of = owner_of(c);
}

enum err embedder_embed_one(struct call *c, const char *text, float *out)
{
    TRY(embedder_embed(c, &text, 1, out));
    return embedder_took(out, embedder_space(c->loop).dim) ? OK : ERR_EMBEDDER_UNAVAILABLE;
}

/* The embedder of the service: the built-in one, or the endpoint of the configuration. */
#include "server/embedder.h"

#include "core/base/vector.h"
#include "server/config.h"
#include "server/embed_worker.h"
#include "server/remote/remote_embedder.h"

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

enum err embedder_embed(struct task *t, const char *const *texts, size_t count, float *out)
{
    if (t->loop->embedder)
        return remote_embedder_embed(t, texts, count, out);
    return t->loop->embed_worker ? embed_worker_embed(t, texts, count, out) : ERR_SHUTTING_DOWN;
}

bool embedder_has_vector(const float *vector, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        if (vector[i] != 0)
            return true;
    return false;
}

enum err embedder_embed_one(struct task *t, const char *text, float *out)
{
    TRY(embedder_embed(t, &text, 1, out));
    return embedder_has_vector(out, embedder_space(t->loop).dim) ? OK : ERR_EMBEDDER_UNAVAILABLE;
}

enum err embedder_embed_items(struct task *t, struct arena *arena, struct embedder_item *items, size_t count,
                              const char **vectors)
{
    const size_t dim = embedder_space(t->loop).dim;
    const char **texts = arena_alloc(arena, (count + 1) * sizeof *texts);
    float *all = arena_alloc(arena, (count + 1) * dim * sizeof *all);
    struct buf out = { .arena = arena };
    for (size_t i = 0; i < count; i++)
        texts[i] = items[i].text;
    TRY(embedder_embed(t, texts, count, all));
    buf_char(&out, '[');
    for (size_t i = 0; i < count; i++) {
        const float *v = all + i * dim;
        items[i].rejected = !embedder_has_vector(v, dim);
        if (items[i].rejected)
            continue;
        task_yield(t); /* a vector of 4,000 numbers takes a millisecond */
        vector_record(&out, items[i].id, v, dim);
    }
    buf_char(&out, ']');
    *vectors = buf_string(&out);
    return OK;
}

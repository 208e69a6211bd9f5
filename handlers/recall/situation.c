/* The vectors of situations: made when there is time, or when they are asked for. */
#include "handlers/recall/situation.h"

#include "core/base/vector.h"
#include "handlers/kit/fields.h"
#include "server/dispatch/query.h"
#include "server/embedder.h"

enum { LATER_MOST = 16 }; /* after a tick: what it has opened, and a few that others have left */

/* What the statements take. */
struct pending_params {
    const char *id, *skill_id, *version, *as_of, *model, *vectors;
    int64_t limit, dim;
};

/* clang-format off */
#define P(kind, member) FIELD(COMPUTED, kind, struct pending_params, member)
static const struct field param_fields[] = {
    P(KIND_UUID, id), P(KIND_LINE, skill_id), P(KIND_LINE, version), P(KIND_TIME, as_of), P(KIND_LINE, model), P(KIND_TEXT, vectors),
    P(KIND_INT, limit), P(KIND_INT, dim),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(pending, id, summary);
QUERY(pending_deployment, SITUATIONS_PENDING_DEPLOYMENT, param_fields, READS(pending));
QUERY(pending_skill, SITUATIONS_PENDING_SKILL, param_fields, READS(pending));
QUERY(situations_store, SITUATIONS_STORE, param_fields);

static const char *vectors_json(struct call *c, struct arena *step, const struct rows *r,
                                const float *vectors, size_t dim)
{
    struct buf out = { .arena = step };
    buf_char(&out, '[');
    for (int row = 0; row < rows_count(r); row++) {
        const float *v = vectors + (size_t)row * dim;
        if (!embedder_took(v, dim))
            continue;
        call_breathe(c); /* a vector of 4,000 numbers is a millisecond */
        buf_fmt(&out, "%s{\"id\":\"%s\",\"vector\":\"", out.len > 1 ? "," : "",
                row_text(r, row, &pending.id));
        vector_text(&out, v, dim, dim);
        buf_text(&out, "\"}");
    }
    buf_char(&out, ']');
    return buf_string(&out);
}

static enum err embed_pending(struct call *c, struct arena *step, const struct situations_scope *scope,
                              const char *as_of, int64_t most)
{
    const struct embedder_space own = embedder_space(c->loop);
    struct pending_params params = { .id = scope->id,
                                     .skill_id = scope->skill_id,
                                     .version = scope->version,
                                     .as_of = as_of,
                                     .model = own.model,
                                     .limit = most,
                                     .dim = (int64_t)own.dim };
    struct rows *r;
    TRY(query_rows(c, scope->skill ? &pending_skill : &pending_deployment, &params, step, &r));
    const size_t count = (size_t)rows_count(r);
    if (!count)
        return OK;
    const char **texts = arena_alloc(step, count * sizeof *texts);
    float *vectors = arena_alloc(step, count * own.dim * sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        texts[i] = row_text(r, (int)i, &pending.summary);
    TRY(embedder_embed(&c->task, texts, count, vectors));
    params.vectors = vectors_json(c, step, r, vectors, own.dim);
    return query_run(c, &situations_store, &params);
}

/* The call may not wait any longer, whatever for. */
static bool is_over(enum err err)
{
    return err == ERR_REQUEST_TIMEOUT || err == ERR_SHUTTING_DOWN;
}

enum err situations_embed_pending(struct call *c, const struct situations_scope *scope, const char *as_of,
                                  int64_t most)
{
    const struct problem kept = c->problem;
    if (c->loop->fills_situations)
        return OK;
    struct arena step = { 0 };
    c->loop->fills_situations = true;
    enum err err = embed_pending(c, &step, scope, as_of, most);
    arena_release(&step);
    c->loop->fills_situations = false;
    if (is_over(err))
        return err;
    c->problem = kept;
    return OK;
}

static void embed_now(struct call *c)
{
    (void)!situations_embed_pending(c, c->afterwards_of, LATEST, LATER_MOST);
}

void situations_embed_later(struct call *c, const struct situations_scope *scope)
{
    if (c->loop->embedder)
        return; /* nobody is asked for anything in the back of the caller */
    struct situations_scope *kept = arena_alloc(&c->arena, sizeof *kept);
    *kept = (struct situations_scope){ .id = arena_text(&c->arena, scope->id),
                                       .skill_id = arena_text(&c->arena, scope->skill_id),
                                       .version = arena_text(&c->arena, scope->version) };
    c->afterwards = embed_now;
    c->afterwards_of = kept;
}

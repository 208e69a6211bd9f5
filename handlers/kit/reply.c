/* Responses that several resources share. */
#include "handlers/kit/reply.h"

#include "server/backfill.h"

enum err reply_created(struct call *c, const struct rows *r, const char *path, const struct column *id)
{
    c->reply.location = arena_fmt(&c->arena, "%s/%s", path, rows_text(r, 0, id));
    return reply_row(c, 201, r);
}

enum err reply_row(struct call *c, int status, const struct rows *r)
{
    rows_json(call_reply_json(c, status), r, 0);
    return OK;
}

void reply_lacks(struct call *c, int64_t pending)
{
    if (!pending)
        return;
    c->reply.no_store = true;
    backfill_found();
}

/* Health, version and metrics. */
#include "commit.gen.h"
#include "server/dispatch/query.h"
#include "handlers/routes.h"
#include "server/config.h"
#include "server/dispatch/auth.h"
#include "server/metrics.h"

static enum err health_live(struct call *c)
{
    return call_reply_text(c, 200, "application/json", "{\"status\":\"ok\"}");
}

static enum err health_ready(struct call *c)
{
    struct buf why = { .arena = &c->arena };
    if (!db_health(&why))
        return problem_set(&c->problem, ERR_NOT_READY, "%s", buf_string(&why));
    return call_reply_text(c, 200, "application/json", "{\"status\":\"ready\"}");
}

static enum err version(struct call *c)
{
    return call_reply_text(c, 200, "application/json",
                           "{\"name\":\"daybook\",\"version\":\"" DAYBOOK_VERSION
                           "\",\"commit\":\"" DAYBOOK_COMMIT "\",\"api\":\"v1\"}");
}

static enum err metrics(struct call *c)
{
    const char *key = c->loop->config->metrics_key;
    if (key[0])
        TRY(auth_configured_key(c, key));
    metrics_page(call_reply_json(c, 200));
    c->reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return OK;
}

const struct route meta_routes[] = {
    { GET, "/health/live", health_live },
    { GET, "/health/ready", health_ready },
    { GET, "/version", version },
    { GET, "/metrics", metrics },
    END_ROUTES,
};

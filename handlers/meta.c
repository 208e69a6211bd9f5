/* Health, version, metrics and the API description. */
#include "commit.gen.h"
#include "server/dispatch/query.h"
#include "handlers/routes.h"
#include "server/assets.h"
#include "server/dispatch/auth.h"
#include "server/metrics.h"

static enum err health_live(struct call *c)
{
    return call_reply_text(c, 200, "application/json", "{\"status\":\"ok\"}");
}

static enum err health_ready(struct call *c)
{
    if (!db_ready(c->loop->db) || !auth_ready(c->loop->auth))
        return ERR_DATABASE_UNAVAILABLE;
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
    metrics_page(call_reply_json(c, 200));
    c->reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return OK;
}

static enum err asset(struct call *c, const char *content_type, const char *from, const char *to)
{
    buf_add(call_reply_json(c, 200), from, (size_t)(to - from));
    c->reply.content_type = content_type;
    return OK;
}

static enum err openapi(struct call *c)
{
    return asset(c, "application/json", asset_openapi_json, asset_openapi_json_end);
}

static enum err docs(struct call *c)
{
    return asset(c, "text/html; charset=utf-8", asset_docs_html, asset_docs_html_end);
}

static enum err docs_viewer(struct call *c)
{
    return asset(c, "text/javascript; charset=utf-8", asset_docs_viewer, asset_docs_viewer_end);
}

const struct route meta_routes[] = {
    { GET, "/health/live", health_live },
    { GET, "/health/ready", health_ready },
    { GET, "/version", version },
    { GET, "/metrics", metrics },
    { GET, "/openapi.json", openapi },
    { GET, "/docs", docs },
    { GET, "/docs/viewer.js", docs_viewer },
    END_ROUTES,
};

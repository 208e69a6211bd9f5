/* The API description and the page that shows it. The files are part of the binary, as they are and
 * compressed. */
#include <stdatomic.h>

#include "core/base/hash.h"
#include "handlers/routes.h"
#include "server/assets.h"
#include "server/dispatch/query.h"

struct form {
    const char *from, *to;
    _Atomic uint64_t hash; /* 0: not computed yet */
};

struct asset {
    const char *content_type;
    const char *policy; /* Content-Security-Policy of a page */
    struct form plain, gzip;
};

#define FORMS(name)                                   \
    .plain = { asset_##name, asset_##name##_end, 0 }, \
    .gzip = { asset_##name##_gzip, asset_##name##_gzip_end, 0 }

/* The viewer makes its styles at run time. The hash is that of the script in the page; a test compares them.
 * Nothing comes from elsewhere than this service. */
#define PAGE_SCRIPT "'sha256-BJupRrAR8KDrzGCzO58ZNUtaAVColVwiFU9Ltl8K8BM='"
#define PAGE_POLICY                                                                             \
    "default-src 'none'; script-src 'self' " PAGE_SCRIPT "; style-src 'self' 'unsafe-inline'; " \
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static struct asset contract = { "application/json", NULL, FORMS(openapi_json) };
static struct asset page = { "text/html; charset=utf-8", PAGE_POLICY, FORMS(docs_html) };
static struct asset viewer = { "text/javascript; charset=utf-8", NULL, FORMS(docs_viewer) };

/* Each form has its own tag, because it has its own bytes. */
static const char *etag_of(struct arena *arena, struct form *f)
{
    uint64_t hash = atomic_load_explicit(&f->hash, memory_order_relaxed);
    if (!hash) {
        hash = hash_bytes(f->from, (size_t)(f->to - f->from), HASH_SEED);
        atomic_store_explicit(&f->hash, hash, memory_order_relaxed);
    }
    return arena_fmt(arena, "\"%016llx\"", (unsigned long long)hash);
}

static enum err reply(struct call *c, struct asset *a)
{
    const bool compressed = call_accepts_gzip(c);
    struct form *f = compressed ? &a->gzip : &a->plain;
    struct reply *r = &c->reply;
    call_reply_json(c, 200);
    /* Not copied: the capacity of 0 makes any later writer allocate. */
    r->body = (struct buf){ &c->arena, (char *)(uintptr_t)f->from, (size_t)(f->to - f->from), 0 };
    r->content_type = a->content_type;
    r->content_encoding = compressed ? "gzip" : NULL;
    r->content_security_policy = a->policy;
    r->etag = etag_of(&c->arena, f);
    r->cache_control = "public, max-age=300, must-revalidate";
    return OK;
}

static enum err openapi(struct call *c)
{
    return reply(c, &contract);
}

static enum err docs(struct call *c)
{
    return reply(c, &page);
}

static enum err docs_viewer(struct call *c)
{
    return reply(c, &viewer);
}

const struct route docs_routes[] = {
    { GET, "/openapi.json", openapi },
    { GET, "/docs", docs },
    { GET, "/docs/viewer.js", docs_viewer },
    END_ROUTES,
};

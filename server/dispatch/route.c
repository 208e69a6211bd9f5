/* The index of all routes, and the match of a request. */
#include "server/dispatch/route.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUTES = 256 };

/* A route with its path split into segments. A parameter's segment keeps its braces. */
static struct indexed {
    const struct route *route;
    size_t segments, params;
    struct segment {
        const char *text;
        size_t len;
    } segment[URI_SEGMENTS];
} indexed[MAX_ROUTES];
static int count;

void route_init(void)
{
    count = 0;
    for (const struct route *const *table = route_tables; *table; table++) {
        for (const struct route *r = *table; r->path; r++) {
            assert(count < MAX_ROUTES);
            struct indexed *to = &indexed[count++];
            *to = (struct indexed){ .route = r };
            for (const char *p = r->path; *p == '/';) {
                p++;
                size_t len = strcspn(p, "/");
                assert(to->segments < URI_SEGMENTS);
                to->params += p[0] == '{';
                to->segment[to->segments++] = (struct segment){ p, len };
                p += len;
            }
        }
    }
}

int route_count(void)
{
    return count;
}

const struct route *route_at(int index)
{
    return indexed[index].route;
}

int route_index(const struct route *r)
{
    int i = 0;
    while (i < count && indexed[i].route != r)
        i++;
    return i;
}

static bool segment_matches(const struct segment *want, const char *have)
{
    if (want->text[0] == '{')
        return *have;
    return want->text[0] == *have && strncmp(have, want->text, want->len) == 0 && !have[want->len];
}

/* From the last segment to the first, because most paths begin with the same one. */
static bool matches(const struct indexed *r, const struct uri *uri)
{
    if (r->segments != uri->segments)
        return false;
    for (size_t i = r->segments; i > 0; i--)
        if (!segment_matches(&r->segment[i - 1], uri->segment[i - 1]))
            return false;
    return true;
}

static bool is_same_path(const struct indexed *a, const struct indexed *b)
{
    return a->segments == b->segments && strcmp(a->route->path, b->route->path) == 0;
}

static const char *allowed_methods(const char *path, struct arena *arena)
{
    struct buf out = { .arena = arena };
    for (int i = 0; i < count; i++) {
        const struct route *r = indexed[i].route;
        if (strcmp(r->path, path) == 0)
            buf_fmt(&out, r->method == GET ? "%s, HEAD, " : "%s, ", method_name(r->method));
    }
    buf_text(&out, "OPTIONS");
    return buf_string(&out);
}

struct route_match route_find(enum method method, const struct uri *uri, struct arena *arena)
{
    struct route_match match = { 0 };
    /* The path with the fewest parameters wins: /v1/lessons/block is not the lesson "block". */
    const struct indexed *best = NULL;
    for (int i = 0; i < count; i++)
        if ((!best || indexed[i].params < best->params) && matches(&indexed[i], uri))
            best = &indexed[i];
    if (!best)
        return match;
    if (method == HEAD)
        method = GET;
    for (int i = 0; i < count && !match.route; i++)
        if (indexed[i].route->method == method && is_same_path(&indexed[i], best))
            match.route = indexed[i].route;
    if (!match.route) {
        match.allow = allowed_methods(best->route->path, arena);
        return match;
    }
    struct pair *pairs = arena_alloc(arena, (best->params + 1) * sizeof *pairs);
    for (size_t i = 0; i < best->segments; i++) {
        const struct segment *s = &best->segment[i];
        if (s->text[0] == '{')
            pairs[match.path.count++] =
                (struct pair){ arena_copy(arena, s->text + 1, s->len - 2), uri->segment[i] };
    }
    match.path.items = pairs;
    return match;
}

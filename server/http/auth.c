/* Who calls: API keys, their owners and roles, and the local owner where no key exists. */
#include "server/http/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/sha256.h"
#include "db/keys.h"
#include "server/http/route.h"
#include "server/log.h"

enum {
    RELOAD_US = 1000 * 1000, /* a revoked key works at most this long */
    RETRY_US = 100 * 1000,
    FIRST_RETRY_US =
        2 * 1000, /* nothing can be served before the first load, and the database is about to be there */
};

/* A call whose key was not among those known: it waits for the next load. */
struct waiting {
    struct waiting *next;
    struct call *call;
    void (*then)(struct call *c, enum err err);
    bool late; /* came when a load was under way, which may not see its key */
};

struct auth {
    struct loop *loop;
    struct timer timer;
    struct key_set *keys; /* NULL: not loaded yet */
    struct waiting *waiting;
    bool loading;
};

static void load(struct auth *a);

static const char *token(const struct call *c)
{
    const char *bearer = c->headers.authorization;
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
        return bearer + 7 + strspn(bearer + 7, " ");
    return c->headers.api_key;
}

static enum err role_check(struct call *c)
{
    if (c->role >= c->route->role)
        return OK;
    return problem_set(&c->problem, ERR_FORBIDDEN, "this needs the role %s; the key has the role %s",
                       role_name(c->route->role), role_name(c->role));
}

/* OK, an error, or *unsure when the key may have been made since the last load, unless that is `fresh`. */
static enum err look(struct auth *a, struct call *c, bool fresh, bool *unsure)
{
    *unsure = false;
    if (c->route->role == ROLE_PUBLIC) {
        c->owner = "";
        return OK;
    }
    if (!a->keys) {
        *unsure = true;
        return OK;
    }
    if (!a->keys->any && !fresh && token(c)) { /* the first key of all may have been made just now */
        *unsure = true;
        return OK;
    }
    if (!a->keys->any) { /* serve() has made sure that only loopback is served */
        c->owner = "local";
        c->role = ROLE_ADMIN;
        return OK;
    }
    const char *given = token(c);
    if (!given)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED,
                           "send a key as Authorization: Bearer or X-API-Key");
    char hash[SHA256_HEX_SIZE];
    sha256_hex(given, strlen(given), hash);
    const struct key *key = key_find(a->keys, hash);
    if (!key) {
        *unsure = true;
        return OK;
    }
    c->owner = arena_text(&c->arena, key->owner);
    c->role = key->role;
    return role_check(c);
}

enum err auth_early(struct call *c)
{
    bool unsure;
    return look(c->loop->auth, c, false, &unsure);
}

void auth_check(struct call *c, void (*next)(struct call *c, enum err err))
{
    struct auth *a = c->loop->auth;
    bool unsure;
    enum err err = look(a, c, false, &unsure);
    if (!unsure) {
        next(c, err);
        return;
    }
    struct waiting *w = arena_alloc(&c->arena, sizeof *w);
    *w = (struct waiting){ a->waiting, c, next, a->loading };
    a->waiting = w;
    c->auth_waits = true;
    load(a);
}

void auth_forget(struct call *c)
{
    struct waiting **at = &c->loop->auth->waiting;
    while (*at && (*at)->call != c)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    c->auth_waits = false;
}

static void loaded(void *user, struct key_set *keys, enum err err)
{
    struct auth *a = user;
    a->loading = false;
    if (err == OK) {
        free(a->keys);
        a->keys = keys;
    }
    struct waiting *w = a->waiting;
    a->waiting = NULL;
    while (w) {
        struct waiting *next = w->next;
        struct call *c = w->call;
        bool unsure = false;
        enum err own = err != OK ? err : look(a, c, !w->late, &unsure);
        if (unsure && w->late) {
            *w = (struct waiting){ a->waiting, c, w->then, false };
            a->waiting = w;
            w = next;
            continue;
        }
        c->auth_waits = false;
        if (unsure)
            own = problem_set(&c->problem, ERR_UNAUTHENTICATED, "the key is not known, or was revoked");
        w->then(c, own);
        w = next;
    }
    if (a->waiting)
        load(a);
    else
        loop_timer(a->loop, &a->timer, err == OK ? RELOAD_US : a->keys ? RETRY_US : FIRST_RETRY_US);
}

static void load(struct auth *a)
{
    if (a->loading)
        return;
    a->loading = true;
    keys_load(a->loop->db, loaded, a);
}

static void reload(struct timer *t)
{
    load(container_of(t, struct auth, timer));
}

struct auth *auth_open(struct loop *loop)
{
    struct auth *a = calloc(1, sizeof *a);
    a->loop = loop;
    a->timer.fire = reload;
    loop_timer(loop, &a->timer, 0);
    return a;
}

bool auth_ready(const struct auth *a)
{
    return a->keys != NULL;
}

void auth_close(struct auth *a)
{
    loop_timer_off(a->loop, &a->timer);
    free(a->keys);
    free(a);
}

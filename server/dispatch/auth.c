/* Authentication: API keys, their owners and roles, and the local owner where no key exists. */
#include "server/dispatch/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/sha256.h"
#include "db/keys.h"
#include "server/log.h"

enum {
    RELOAD_US = 1000 * 1000, /* a revoked key works at most this long */
    RETRY_US = 100 * 1000,
    FIRST_RETRY_US = 2 * 1000, /* nothing can be served before the first load */
};

/* A call whose key is not among those loaded: it waits for the next load. */
struct waiting {
    struct task_wait wait;
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
    const struct http_headers *headers = &c->exchange->headers;
    const char *bearer = headers->authorization;
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
        return bearer + 7 + strspn(bearer + 7, " ");
    return headers->api_key;
}

static enum err role_check(struct call *c)
{
    if (c->role >= c->route->role)
        return OK;
    return problem_set(&c->problem, ERR_FORBIDDEN, "this needs the role %s; the key has the role %s",
                       role_name(c->route->role), role_name(c->role));
}

static const char *key_hash(struct call *c, const char *given)
{
    if (!c->key_hash) {
        char *hash = arena_alloc(&c->arena, SHA256_HEX_SIZE);
        sha256_hex(given, strlen(given), hash);
        c->key_hash = hash;
    }
    return c->key_hash;
}

static void identify(struct call *c, const char *owner, enum role role)
{
    c->owner = c->task.owner = owner;
    c->role = role;
}

/* OK, an error, or *unsure when the key may have been made since the last load, unless that is `fresh`. */
static enum err look(struct auth *a, struct call *c, bool fresh, bool *unsure)
{
    *unsure = false;
    if (c->route->role == ROLE_PUBLIC) {
        identify(c, "", ROLE_PUBLIC);
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
        identify(c, "local", ROLE_ADMIN);
        return OK;
    }
    const char *given = token(c);
    if (!given)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED,
                           "send a key as Authorization: Bearer or X-API-Key");
    const struct key *key = key_find(a->keys, key_hash(c, given));
    if (!key) {
        *unsure = true;
        return OK;
    }
    if (!c->owner || strcmp(c->owner, key->owner) != 0 || c->role != key->role)
        identify(c, arena_text(&c->arena, key->owner), key->role);
    return role_check(c);
}

enum err auth_early(struct call *c)
{
    bool unsure;
    return look(c->loop->auth, c, false, &unsure);
}

static void unlink_waiting(struct waiting *w)
{
    struct waiting **at = &w->call->loop->auth->waiting;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

static bool give_up(struct task_wait *wait, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    unlink_waiting(container_of(wait, struct waiting, wait));
    return true;
}

static void woken(struct task_wait *wait)
{
    struct waiting *w = container_of(wait, struct waiting, wait);
    w->then(w->call, wait->why);
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
    *w = (struct waiting){ .wait = { .give_up = give_up, .woken = woken },
                           .next = a->waiting,
                           .call = c,
                           .then = next,
                           .late = a->loading };
    a->waiting = w;
    task_expect(&c->task, &w->wait);
    load(a);
}

/* One that waited when the keys were loaded. False: they may have been read before its key was made. */
static bool resolve(struct auth *a, struct waiting *w, enum err err)
{
    bool unsure = false;
    if (err == OK)
        err = look(a, w->call, !w->late, &unsure);
    if (unsure && w->late) {
        w->late = false;
        return false;
    }
    if (unsure)
        err = problem_set(&w->call->problem, ERR_UNAUTHENTICATED, "the key is not known, or was revoked");
    task_wake(&w->wait, err);
    return true;
}

static void loaded(void *user, struct key_set *keys, enum err err)
{
    struct auth *a = user;
    a->loading = false;
    if (err == OK) {
        free(a->keys);
        a->keys = keys;
    }
    struct waiting *due = a->waiting;
    a->waiting = NULL;
    for (struct waiting *w = due, *next; w; w = next) {
        next = w->next;
        if (!resolve(a, w, err)) {
            w->next = a->waiting;
            a->waiting = w;
        }
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

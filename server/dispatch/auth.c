/* Authentication: API keys, their owners and roles, and the local owner when no key exists. */
#include "server/dispatch/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/memory.h"
#include "core/base/sha256.h"
#include "db/keys.h"
#include "server/dispatch/origin.h"
#include "server/log.h"

enum {
    RELOAD_US = 1000 * 1000, /* a revoked key is accepted for at most this long */
    RETRY_US = 100 * 1000,
    FIRST_RETRY_US = 2 * 1000, /* nothing can be served before the first load */
};

/* A call whose key is not in the cache. It waits for the next load. */
struct pending {
    struct task_wait wait;
    struct pending *next;
    struct call *call;
    void (*then)(struct call *c, enum err err);
    bool missed_load; /* it arrived during a load, which may not include its key */
};

struct auth {
    struct loop *loop;
    struct timer timer;
    struct key_set *keys; /* NULL: not loaded yet */
    struct pending *pending;
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

static const char *key_hash(struct call *c, const char *sent_key)
{
    if (!c->key_hash) {
        char *hash = arena_alloc(&c->arena, SHA256_HEX_SIZE);
        sha256_hex(sent_key, strlen(sent_key), hash);
        c->key_hash = hash;
    }
    return c->key_hash;
}

static void identify(struct call *c, const char *owner, enum role role)
{
    c->owner = c->task.owner = owner;
    c->role = role;
}

/* Sets *reload_needed if the key may have been created since the last load. `fresh`: the last load started
 * after the request arrived. */
static enum err check_key(struct auth *a, struct call *c, bool fresh, bool *reload_needed)
{
    *reload_needed = false;
    if (a->keys && !a->keys->any)
        TRY(origin_check_host(c));
    if (c->route->role == ROLE_PUBLIC) {
        identify(c, "", ROLE_PUBLIC);
        return OK;
    }
    if (!a->keys) {
        *reload_needed = true;
        return OK;
    }
    if (!a->keys->any && !fresh && token(c)) { /* the very first key may have just been created */
        *reload_needed = true;
        return OK;
    }
    if (!a->keys->any) { /* serve() allows this on loopback only */
        identify(c, "local", ROLE_ADMIN);
        return OK;
    }
    const char *sent_key = token(c);
    if (!sent_key)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED,
                           "send a key as Authorization: Bearer or X-API-Key");
    const struct key *key = keys_find(a->keys, key_hash(c, sent_key));
    if (!key) {
        *reload_needed = true;
        return OK;
    }
    if (!c->owner || strcmp(c->owner, key->owner) != 0 || c->role != key->role)
        identify(c, arena_text(&c->arena, key->owner), key->role);
    return role_check(c);
}

enum err auth_early(struct call *c)
{
    bool reload_needed;
    return check_key(c->loop->auth, c, false, &reload_needed);
}

static void remove_pending(struct pending *w)
{
    struct pending **at = &w->call->loop->auth->pending;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

static bool give_up(struct task_wait *wait, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    remove_pending(container_of(wait, struct pending, wait));
    return true;
}

static void on_wake(struct task_wait *wait)
{
    struct pending *w = container_of(wait, struct pending, wait);
    w->then(w->call, wait->why);
}

void auth_check(struct call *c, void (*next)(struct call *c, enum err err))
{
    struct auth *a = c->loop->auth;
    bool reload_needed;
    enum err err = check_key(a, c, false, &reload_needed);
    if (!reload_needed) {
        next(c, err);
        return;
    }
    struct pending *w = arena_alloc(&c->arena, sizeof *w);
    *w = (struct pending){ .wait = { .give_up = give_up, .woken = on_wake },
                           .next = a->pending,
                           .call = c,
                           .then = next,
                           .missed_load = a->loading };
    a->pending = w;
    task_expect(&c->task, &w->wait);
    load(a);
}

/* Completes a pending call after a load. Returns false if it must wait for one more load, because this one
 * may have read the keys before the call's key was created. */
static bool resolve(struct auth *a, struct pending *w, enum err err)
{
    bool reload_needed = false;
    if (err == OK)
        err = check_key(a, w->call, !w->missed_load, &reload_needed);
    if (reload_needed && w->missed_load) {
        w->missed_load = false;
        return false;
    }
    if (reload_needed)
        err = problem_set(&w->call->problem, ERR_UNAUTHENTICATED, "the key is unknown or revoked");
    task_wake(&w->wait, err);
    return true;
}

static void on_loaded(void *user, struct key_set *keys, enum err err)
{
    struct auth *a = user;
    a->loading = false;
    if (err == OK) {
        free(a->keys);
        a->keys = keys;
    }
    struct pending *resolving = a->pending;
    a->pending = NULL;
    for (struct pending *w = resolving, *next; w; w = next) {
        next = w->next;
        if (!resolve(a, w, err)) {
            w->next = a->pending;
            a->pending = w;
        }
    }
    if (a->pending)
        load(a);
    else
        loop_timer(a->loop, &a->timer, err == OK ? RELOAD_US : a->keys ? RETRY_US : FIRST_RETRY_US);
}

static void load(struct auth *a)
{
    if (a->loading)
        return;
    a->loading = true;
    keys_load(a->loop->db, on_loaded, a);
}

static void reload(struct timer *t)
{
    load(container_of(t, struct auth, timer));
}

struct auth *auth_open(struct loop *loop)
{
    struct auth *a = memory_zero(1, sizeof *a);
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

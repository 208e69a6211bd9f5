/* Authentication: API keys, their owners and roles, and the local owner when no key exists.
 *
 * A loop holds all keys in memory and reads what changed twice a second, so a known key never waits. An
 * unknown key is looked up by its hash, once for all requests that wait for it, and its absence is
 * remembered. */
#include "server/dispatch/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/memory.h"
#include "core/base/rate.h"
#include "core/base/time_text.h"
#include "server/config.h"
#include "server/dispatch/failed_keys.h"
#include "server/dispatch/key_bucket.h"
#include "server/dispatch/key_misses.h"
#include "server/dispatch/key_set.h"
#include "server/dispatch/origin.h"
#include "server/log.h"
#include "server/metrics.h"

enum {
    REFRESH_US = 500 * 1000, /* a revoked key is accepted for at most this long, plus one statement */
    RETRY_US = 100 * 1000,
    FIRST_RETRY_US = 2 * 1000, /* nothing can be served before the keys are loaded */
    OVERLAP_S = 10,            /* a change may commit this long after its time */
    LOAD_PAGE = 1000,          /* keys per statement while they are loaded */
    WALK_PAGE = 128,           /* and afterwards */
};

enum standing { STANDING_GOOD, STANDING_UNKNOWN, STANDING_REVOKED, STANDING_EXPIRED };

/* A lookup of one hash, and the calls that wait for it. */
struct lookup {
    struct keys_read read;
    struct lookup *next;
    struct auth *auth;
    unsigned char hash[SHA256_BYTES];
    struct pending *pending;
};

struct pending {
    struct task_wait wait;
    struct pending *next;
    struct lookup *lookup;
    struct call *call;
    void (*then)(struct call *c, enum err err);
};

struct auth {
    struct loop *loop;
    struct timer timer;
    struct key_set keys;
    struct key_misses misses;
    struct lookup *lookups;
    /* Whether a key was ever created. Once one was, the service stays closed: a row is never deleted. */
    enum { HAS_KEYS_UNKNOWN, HAS_NO_KEYS, HAS_KEYS } has_keys;
    bool loaded; /* the first walk over all keys has ended */
    struct keys_read refresh;
    int64_t refresh_us;   /* when the running refresh began */
    int64_t refreshed_us; /* when the last one that succeeded began */
    unsigned walk;
    bool walking;                      /* `after` is set */
    unsigned char after[SHA256_BYTES]; /* the last key of the walk's last page */
};

/* ---- the key of a call ---- */

static const char *bearer(const struct call *c)
{
    const char *sent = c->exchange->headers.authorization;
    return sent && strncasecmp(sent, "Bearer ", 7) == 0 ? sent + 7 + strspn(sent + 7, " ") : NULL;
}

static const char *token(const struct call *c)
{
    const char *sent = bearer(c);
    return sent ? sent : c->exchange->headers.api_key;
}

/* Compares digests, so that the time says nothing about the key. */
static bool is_key(const char *sent, const char *key)
{
    char hashes[2][SHA256_HEX_SIZE];
    sha256_hex(sent, strlen(sent), hashes[0]);
    sha256_hex(key, strlen(key), hashes[1]);
    return memcmp(hashes[0], hashes[1], SHA256_HEX_SIZE) == 0;
}

/* Without a token: that of the empty text, which no key has. */
static const unsigned char *key_hash(struct call *c)
{
    if (!c->key_hash) {
        const char *sent = token(c);
        unsigned char *hash = arena_alloc(&c->arena, SHA256_BYTES);
        struct sha256 s;
        sha256_start(&s);
        sha256_add(&s, sent ? sent : "", sent ? strlen(sent) : 0);
        sha256_end(&s, hash);
        c->key_hash = hash;
    }
    return c->key_hash;
}

static void identify(struct call *c, const char *owner, enum role role)
{
    c->owner = c->task.owner = owner;
    c->role = role;
}

static enum err role_check(struct call *c)
{
    if (c->role >= c->route->role)
        return OK;
    return problem_set(&c->problem, ERR_FORBIDDEN, "this needs the role %s; the key has the role %s",
                       role_name(c->route->role), role_name(c->role));
}

static enum standing standing_of(const struct known_key *k)
{
    if (!k)
        return STANDING_UNKNOWN;
    if (k->key.revoked)
        return STANDING_REVOKED;
    if (k->key.expires_us != KEY_NEVER_US && k->key.expires_us <= loop_wall_us())
        return STANDING_EXPIRED;
    return STANDING_GOOD;
}

/* ---- limits ---- */

static enum err limited(struct call *c, enum err err, enum metrics_key reason, int64_t wait_ns)
{
    metrics_key_rejected(c->loop->metrics, reason);
    c->reply.retry_after_s = rate_seconds(wait_ns);
    return err;
}

/* Counts the request once, however often its key is checked. */
static enum err rate_check(struct call *c, const struct known_key *k)
{
    if (!k->bucket || c->rate_taken)
        return OK;
    const int64_t wait = key_bucket_take(k->bucket, k->key.rate, k->key.burst, loop_clock_us() * 1000);
    c->rate_taken = !wait;
    if (!wait)
        return OK;
    problem_set(&c->problem, ERR_RATE_LIMITED, "the key has %d requests a second, and %d at once",
                k->key.rate, k->key.burst);
    return limited(c, ERR_RATE_LIMITED, METRICS_KEY_LIMITED, wait);
}

static void log_rejected(const struct call *c, const char *reason, const char *id)
{
    char address[ADDRESS_TEXT_SIZE];
    const int64_t count = failed_keys_count(&c->exchange->address, c->loop->now_us * 1000);
    if (count)
        log_event(LOG_WARN, "key_rejected", "address=%s reason=%s count=%lld%s%s",
                  address_text(&c->exchange->address, address), reason, (long long)count, id ? " key=" : "",
                  id ? id : "");
}

/* Takes a failure from the allowance of the client's address. */
static enum err take_failure(struct call *c)
{
    const int64_t per_minute = c->loop->config->max_failed_keys;
    const int64_t wait = failed_keys_take(&c->exchange->address, per_minute, c->loop->now_us * 1000);
    if (!wait)
        return OK;
    log_rejected(c, "address_limited", NULL);
    problem_set(&c->problem, ERR_TOO_MANY_FAILED_KEYS, "this address may fail %lld times a minute",
                (long long)per_minute);
    return limited(c, ERR_TOO_MANY_FAILED_KEYS, METRICS_KEY_ADDRESS_LIMITED, wait);
}

static void return_failure(struct call *c)
{
    failed_keys_return(&c->exchange->address, c->loop->config->max_failed_keys, c->loop->now_us * 1000);
}

/* The reply for a key that is not good. It does not tell revoked from unknown keys: who has a stolen key need
 * not learn that the theft was noticed. `k`: NULL if it is unknown. */
static enum err rejected(struct call *c, enum standing standing, const struct known_key *k)
{
    static const struct {
        const char *name;
        enum metrics_key metric;
    } reasons[] = {
        [STANDING_UNKNOWN] = { "unknown", METRICS_KEY_UNKNOWN },
        [STANDING_REVOKED] = { "revoked", METRICS_KEY_REVOKED },
        [STANDING_EXPIRED] = { "expired", METRICS_KEY_EXPIRED },
    };
    metrics_key_rejected(c->loop->metrics, reasons[standing].metric);
    log_rejected(c, reasons[standing].name, k ? k->key.id : NULL);
    if (standing != STANDING_EXPIRED)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED, "the key is unknown or revoked");
    char at[TIME_TEXT_SIZE];
    time_text_short(k->key.expires_us, at);
    return problem_set(&c->problem, ERR_UNAUTHENTICATED, "the key expired at %s", at);
}

enum err auth_configured_key(struct call *c, const char *key)
{
    const char *sent = token(c);
    if (!sent)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED, "send the key as Authorization: Bearer");
    if (is_key(sent, key))
        return OK;
    TRY(take_failure(c));
    return rejected(c, STANDING_UNKNOWN, NULL);
}

/* ---- what the loop knows ---- */

/* Decides without the database. *standing tells whether the result counts: it does not if the call has a key
 * that is not good, or if whether it needs one is not known yet. */
static enum err check_known(struct auth *a, struct call *c, enum standing *standing)
{
    *standing = STANDING_GOOD;
    if (a->has_keys == HAS_NO_KEYS)
        TRY(origin_check_host(c));
    if (c->route->role == ROLE_PUBLIC) {
        identify(c, "", ROLE_PUBLIC);
        return OK;
    }
    const bool sent = token(c);
    if (!sent && a->has_keys == HAS_NO_KEYS) { /* serve() allows this on loopback only */
        identify(c, "local", ROLE_ADMIN);
        return OK;
    }
    if (!sent && a->has_keys == HAS_KEYS)
        return problem_set(&c->problem, ERR_UNAUTHENTICATED,
                           "send a key as Authorization: Bearer or X-API-Key");
    const struct known_key *k = key_set_find(&a->keys, key_hash(c));
    *standing = standing_of(k);
    if (*standing != STANDING_GOOD)
        return OK;
    if (!c->owner || strcmp(c->owner, k->key.owner) != 0 || c->role != k->key.role)
        identify(c, arena_text(&c->arena, k->key.owner), k->key.role);
    TRY(rate_check(c, k));
    return role_check(c);
}

enum err auth_early(struct call *c)
{
    const char *in_bearer = bearer(c), *in_header = c->exchange->headers.api_key;
    if (in_bearer && in_header && strcmp(in_bearer, in_header) != 0) /* a gateway may check the other one */
        return problem_set(&c->problem, ERR_BAD_REQUEST,
                           "Authorization and X-API-Key hold different keys: send one of them");
    enum standing standing;
    return check_known(c->loop->auth, c, &standing);
}

/* ---- lookups ---- */

static bool give_up(struct task_wait *wait, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    struct pending *p = container_of(wait, struct pending, wait);
    struct pending **at = &p->lookup->pending;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    return true;
}

static void on_wake(struct task_wait *wait)
{
    struct pending *p = container_of(wait, struct pending, wait);
    p->then(p->call, wait->why);
}

/* The outcome of a call whose key was looked up. A failure was taken for it, if there are keys. */
static enum err after_lookup(struct auth *a, struct call *c)
{
    enum standing standing;
    enum err err = check_known(a, c, &standing);
    if (standing == STANDING_GOOD)
        return err;
    if (a->has_keys == HAS_NO_KEYS) { /* a client that sends a key anyway */
        identify(c, "local", ROLE_ADMIN);
        return OK;
    }
    return rejected(c, standing, key_set_find(&a->keys, key_hash(c)));
}

static void unlist(struct lookup *l)
{
    struct lookup **at = &l->auth->lookups;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
}

static void on_found(struct keys_read *read, enum err err)
{
    struct lookup *l = container_of(read, struct lookup, read);
    struct auth *a = l->auth;
    unlist(l);
    if (err == OK && read->any)
        a->has_keys = HAS_KEYS;
    else if (err == OK && a->has_keys == HAS_KEYS_UNKNOWN)
        a->has_keys = HAS_NO_KEYS;
    if (err == OK && read->count)
        key_set_put(&a->keys, &read->keys[0], a->walk);
    else if (err == OK)
        key_misses_add(&a->misses, l->hash, a->loop->now_us);
    for (struct pending *p; (p = l->pending);) {
        l->pending = p->next;
        enum err outcome = err == OK ? after_lookup(a, p->call) : err;
        if (outcome != ERR_UNAUTHENTICATED && p->call->failure_taken)
            return_failure(p->call);
        task_wake(&p->wait, outcome);
    }
    free(l);
}

/* The running lookup of the hash, or a new one that is not sent yet. */
static struct lookup *lookup_of(struct auth *a, const unsigned char *hash, bool *new)
{
    struct lookup *l = a->lookups;
    while (l && memcmp(l->hash, hash, SHA256_BYTES) != 0)
        l = l->next;
    *new = !l;
    if (l)
        return l;
    l = memory_zero(1, sizeof *l);
    *l = (struct lookup){ .read.done = on_found, .next = a->lookups, .auth = a };
    memcpy(l->hash, hash, SHA256_BYTES);
    return a->lookups = l;
}

static void look_up(struct auth *a, struct call *c, void (*next)(struct call *c, enum err err))
{
    bool new;
    struct lookup *l = lookup_of(a, key_hash(c), &new);
    struct pending *p = arena_alloc(&c->arena, sizeof *p);
    *p = (struct pending){ .wait = { .give_up = give_up, .woken = on_wake },
                           .next = l->pending,
                           .lookup = l,
                           .call = c,
                           .then = next };
    l->pending = p;
    task_expect(&c->task, &p->wait);
    if (!new)
        return;
    metrics_key_lookup(a->loop->metrics);
    keys_find(a->loop->db, &l->read, l->hash);
}

/* Rejects a key that is not good without asking the database, if possible. Otherwise *unknown is set. */
static enum err check_failure(struct auth *a, struct call *c, enum standing standing, bool *unknown)
{
    const struct known_key *k = key_set_find(&a->keys, key_hash(c));
    const bool missed = !k && key_misses_has(&a->misses, key_hash(c), c->loop->now_us);
    *unknown = !k && !missed;
    if (a->has_keys == HAS_NO_KEYS && missed) {
        identify(c, "local", ROLE_ADMIN);
        return OK;
    }
    if (a->has_keys != HAS_KEYS || !a->loaded) /* before that, an unknown key may well be good */
        return *unknown ? OK : rejected(c, standing, k);
    TRY(take_failure(c));
    c->failure_taken = true;
    return *unknown ? OK : rejected(c, standing, k);
}

void auth_check(struct call *c, void (*next)(struct call *c, enum err err))
{
    struct auth *a = c->loop->auth;
    enum standing standing;
    bool unknown = false;
    enum err err = check_known(a, c, &standing);
    if (standing != STANDING_GOOD)
        err = check_failure(a, c, standing, &unknown);
    if (err == OK && unknown)
        look_up(a, c, next);
    else
        next(c, err);
}

/* ---- refreshing ---- */

static void refresh(struct auth *a)
{
    struct loop *l = a->loop;
    a->refresh_us = l->now_us;
    keys_refresh(l->db, &a->refresh, (l->now_us - a->refreshed_us) / 1000000 + OVERLAP_S,
                 a->walking ? a->after : NULL, a->loaded ? WALK_PAGE : LOAD_PAGE);
}

/* The walk goes on after this page, or starts again. */
static void walk_on(struct auth *a, const struct keys_read *r)
{
    a->walking = r->paged == (a->loaded ? WALK_PAGE : LOAD_PAGE);
    if (a->walking) {
        memcpy(a->after, r->last->hash, SHA256_BYTES);
        return;
    }
    key_set_walked(&a->keys, a->walk++);
    a->loaded = true;
    if (a->has_keys != HAS_KEYS)
        a->has_keys = a->keys.count ? HAS_KEYS : HAS_NO_KEYS;
}

static void on_refreshed(struct keys_read *r, enum err err)
{
    struct auth *a = container_of(r, struct auth, refresh);
    if (err != OK) {
        loop_timer(a->loop, &a->timer, a->loaded ? RETRY_US : FIRST_RETRY_US);
        return;
    }
    a->refreshed_us = a->refresh_us;
    for (int i = 0; i < r->count; i++)
        key_set_put(&a->keys, &r->keys[i], a->walk);
    if (a->keys.count)
        a->has_keys = HAS_KEYS;
    walk_on(a, r);
    loop_timer(a->loop, &a->timer, a->loaded ? REFRESH_US : 0);
}

static void on_timer(struct timer *t)
{
    refresh(container_of(t, struct auth, timer));
}

struct auth *auth_open(struct loop *loop)
{
    struct auth *a = memory_zero(1, sizeof *a);
    a->loop = loop;
    a->refresh.done = on_refreshed;
    a->refreshed_us = loop->now_us;
    a->timer.fire = on_timer;
    loop_timer(loop, &a->timer, 0);
    return a;
}

bool auth_ready(const struct auth *a)
{
    return a->loaded;
}

void auth_close(struct auth *a)
{
    loop_timer_off(a->loop, &a->timer);
    key_set_free(&a->keys);
    free(a);
}

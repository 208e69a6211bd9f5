/* API keys: created, rotated, listed and revoked from the command line. */
#include "db/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/sha256.h"
#include "core/base/time_span.h"
#include "core/base/time_text.h"
#include "core/base/utf8.h"
#include "core/base/uuid.h"
#include "db/admin_internal.h"
#include "server/log.h"
#include "server/role.h"

#define TOKEN_PREFIX "dbk_"

enum {
    TOKEN_RANDOM_BYTES = 32,
    TOKEN_SIZE = sizeof TOKEN_PREFIX + 43,
    OWNER_MAX = 64,
    NAME_MAX_CHARS = 100,
    COUNT_MAX = 100000,
};

/* ---- the parts of a key ---- */

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool random_bytes(void *out, size_t len)
{
    return getrandom(out, len, 0) == (ssize_t)len || log_failure("no random bytes: %s", strerror(errno));
}

static bool make_token(char out[TOKEN_SIZE])
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[TOKEN_RANDOM_BYTES + 1] = { 0 };
    if (!random_bytes(bytes, TOKEN_RANDOM_BYTES))
        return false;
    char *p = stpcpy(out, TOKEN_PREFIX);
    for (int bit = 0; bit < TOKEN_RANDOM_BYTES * 8; bit += 6) {
        unsigned two = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        *p++ = alphabet[two >> (10 - bit % 8) & 63];
    }
    *p = 0;
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

static bool make_id(char out[UUID_SIZE])
{
    unsigned char bytes[UUID_RANDOM_BYTES];
    if (!random_bytes(bytes, sizeof bytes))
        return false;
    uuid_v7(now_us() / 1000, bytes, out);
    return true;
}

static bool check_owner(const char *owner)
{
    size_t len = strspn(owner, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
    return (len >= 1 && len <= OWNER_MAX && !owner[len]) ||
           log_failure("an owner has 1 to %d of the characters a-z 0-9 _ . -", OWNER_MAX);
}

static bool check_role(const char *role)
{
    return role_parse(role) != ROLE_PUBLIC || log_failure("a role is agent, researcher, reader or admin");
}

static bool check_name(const char *name)
{
    size_t len = name ? strlen(name) : 0;
    if (utf8_check(name ? name : "", len) != len)
        return log_failure("the name is not valid UTF-8");
    if (name && (!len || utf8_count(name, len) > NAME_MAX_CHARS))
        return log_failure("a name has 1 to %d characters", NAME_MAX_CHARS);
    for (const char *p = name; p && *p;) {
        if (utf8_is_control(utf8_next(&p)))
            return log_failure("a name holds no control characters");
    }
    return true;
}

/* ---- limits ---- */

/* `text` may be NULL. */
static bool check_count(const char *option, const char *text)
{
    if (!text)
        return true;
    const size_t len = strlen(text);
    const bool digits = len >= 1 && len <= 6 && strspn(text, "0123456789") == len;
    const long count = digits ? strtol(text, NULL, 10) : 0;
    return (count >= 1 && count <= COUNT_MAX) ||
           log_failure("%s is a whole number from 1 to %d, not \"%s\"", option, COUNT_MAX, text);
}

/* A date is the start of its day. */
static bool parse_end(const char *text, int64_t *us)
{
    char day[32];
    int64_t span;
    if (time_span_parse(text, &span)) {
        *us = now_us() + span;
        return true;
    }
    snprintf(day, sizeof day, strlen(text) == 10 ? "%sT00:00:00Z" : "%.31s", text);
    return time_text_parse(strlen(text) == 10 ? day : text, us);
}

/* `text` may be NULL; then so is *end. */
static bool read_end(const char *text, char out[TIME_TEXT_SIZE], const char **end)
{
    int64_t us;
    *end = NULL;
    if (!text)
        return true;
    if (!parse_end(text, &us))
        return log_failure("--expires is a date (2027-01-31), a time (2027-01-31T09:00:00Z) or a duration "
                           "(90d, 12h, 30m), not \"%s\"",
                           text);
    if (us <= now_us())
        return log_failure("--expires %s is not in the future", text);
    time_text_full(us, out);
    *end = out;
    return true;
}

/* ---- creating and rotating ---- */

/* What identifies a new key. */
struct identity {
    char id[UUID_SIZE], token[TOKEN_SIZE], hash[SHA256_HEX_SIZE];
};

static bool make_identity(struct identity *out)
{
    if (!make_id(out->id) || !make_token(out->token))
        return false;
    sha256_hex(out->token, strlen(out->token), out->hash);
    return true;
}

/* Prints the token, the only time. */
static bool show(struct identity *made)
{
    printf("%s\n", made->token);
    explicit_bzero(made->token, sizeof made->token);
    return fflush(stdout) == 0 ||
           log_failure("the token of the key %s could not be printed: revoke it and create another",
                       made->id);
}

/* Columns: owner, role, expires_at, rate, burst. */
#define RETURNING             \
    "returning owner, role, " \
    "to_char(expires_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), rate, burst"

static void describe(const PGresult *r)
{
    if (!PQgetisnull(r, 0, 2))
        fprintf(stderr, "It expires at %s.\n", PQgetvalue(r, 0, 2));
    if (!PQgetisnull(r, 0, 3))
        fprintf(stderr, "It may send %s requests a second, and %s at once.\n", PQgetvalue(r, 0, 3),
                PQgetvalue(r, 0, 4));
}

/* What was stored without a key belongs to the owner local. Only the first key, if it is of another owner. */
static void tell_local_rows(PGconn *pg, const char *id)
{
    PGresult *r = admin_query(pg, "cannot read the owner \"local\"",
                              "select from daybook.api_keys where id = $1 and owner <> 'local' "
                              "and not exists (select from daybook.api_keys where id <> $1) "
                              "and (exists (select from daybook.lessons where owner = 'local') "
                              "or exists (select from daybook.skills where owner = 'local') "
                              "or exists (select from daybook.episodic_memory where owner = 'local'))",
                              1, (const char *const[]){ id });
    if (r && PQntuples(r))
        fprintf(stderr,
                "What was stored without a key belongs to the owner local, and this key does not see it: "
                "a key with --owner local does.\n");
    PQclear(r);
}

bool admin_key_create(const char *database_url, const struct admin_key *key)
{
    struct identity made;
    char end[TIME_TEXT_SIZE];
    const char *expires;
    if (!check_owner(key->owner) || !check_role(key->role) || !check_name(key->name) ||
        !check_count("--rate", key->rate) || !check_count("--burst", key->burst) ||
        !read_end(key->expires, end, &expires) || !make_identity(&made))
        return false;
    const char *const values[] = { made.id,   key->owner, key->role, key->name,
                                   made.hash, expires,    key->rate, key->burst ? key->burst : key->rate };
    PGconn *pg = admin_connect(database_url);
    PGresult *r =
        pg ? admin_query(
                 pg, "the key was not made",
                 "insert into daybook.api_keys (id, owner, role, name, token_hash, expires_at, rate, burst) "
                 "values ($1, $2, $3, $4, $5, $6, $7, $8) " RETURNING,
                 8, values)
           : NULL;
    const bool ok = r && show(&made);
    if (ok) {
        fprintf(stderr, "Key %s of owner %s with role %s. The token above is not shown again.\n", made.id,
                key->owner, key->role);
        describe(r);
        tell_local_rows(pg, made.id);
    }
    PQclear(r);
    PQfinish(pg);
    return ok;
}

/* Tells why the key cannot be rotated. */
static bool cannot_rotate(PGconn *pg, const char *id)
{
    PGresult *r = admin_query(pg, "cannot read the key",
                              "select k.rotated_at is not null, "
                              "(select n.id from daybook.api_keys n where n.owner = k.owner "
                              "and n.created_at = k.rotated_at and n.id <> k.id limit 1) "
                              "from daybook.api_keys k where k.id = $1",
                              1, (const char *const[]){ id });
    if (r && !PQntuples(r))
        log_failure("there is no key %s", id);
    else if (r && PQgetvalue(r, 0, 0)[0] == 't')
        log_failure("the key %s was rotated before: rotate the key that replaced it%s%s", id,
                    PQgetisnull(r, 0, 1) ? "" : ", ", PQgetvalue(r, 0, 1));
    else if (r)
        log_failure("the key %s is revoked: create another", id);
    PQclear(r);
    return false;
}

/* Without an overlap the old key is revoked, which needs no agreement between the clocks of the database and
 * the service. */
static const char rotation[] =
    "with old as ("
    "select * from daybook.api_keys where id = $1 and revoked_at is null and rotated_at is null for update"
    "), ended as ("
    "update daybook.api_keys as k set rotated_at = now(), "
    "revoked_at = case when $4::bigint = 0 then now() end, "
    "expires_at = least(k.expires_at, now() + make_interval(secs => $4::bigint)) "
    "from old where k.id = old.id) "
    "insert into daybook.api_keys (id, owner, role, name, token_hash, expires_at, rate, burst) "
    "select $2, owner, role, name, $3, coalesce($5, now() + (expires_at - created_at)), rate, burst from "
    "old " RETURNING;

bool admin_key_rotate(const char *database_url, const char *id, const char *overlap, const char *expires)
{
    struct identity made;
    char uuid[UUID_SIZE], end[TIME_TEXT_SIZE], seconds[24];
    int64_t overlap_us = 0;
    if (!uuid_parse(id, uuid))
        return log_failure("%s is not the id of a key: see daybookd key list", id);
    if (overlap && !time_span_parse(overlap, &overlap_us))
        return log_failure("--overlap is a duration (7d, 1h, 30m), not \"%s\"", overlap);
    if (!read_end(expires, end, &expires) || !make_identity(&made))
        return false;
    snprintf(seconds, sizeof seconds, "%lld", (long long)(overlap_us / 1000000));
    const char *const values[] = { uuid, made.id, made.hash, seconds, expires };
    PGconn *pg = admin_connect(database_url);
    PGresult *r = pg ? admin_query(pg, "the key was not rotated", rotation, 5, values) : NULL;
    const bool ok = r && (PQntuples(r) == 1 || cannot_rotate(pg, uuid)) && show(&made);
    if (ok) {
        fprintf(stderr,
                "Key %s of owner %s with role %s replaces key %s, which %s%s. The token above is not shown "
                "again.\n",
                made.id, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), uuid,
                overlap_us ? "ends in " : "is revoked", overlap_us ? overlap : "");
        describe(r);
    }
    PQclear(r);
    PQfinish(pg);
    return ok;
}

/* ---- listing and revoking ---- */

static void print_row(const PGresult *r, int row, const int width[])
{
    for (int i = 0; i < PQnfields(r); i++) {
        const char *text = row < 0 ? PQfname(r, i) : PQgetisnull(r, row, i) ? "-" : PQgetvalue(r, row, i);
        int pad = width[i] - (int)utf8_count(text, strlen(text));
        printf("%s%*s", text, i + 1 < PQnfields(r) ? pad + 2 : 0, "");
    }
    putchar('\n');
}

bool admin_key_list(const char *database_url)
{
    PGconn *pg = admin_connect(database_url);
    PGresult *r =
        pg ? admin_query(
                 pg, "cannot read the keys",
                 "select id, owner, role, "
                 "to_char(created_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as created_at, "
                 "to_char(revoked_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as revoked_at, "
                 "to_char(expires_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as expires_at, "
                 "rate, burst, name from daybook.api_keys order by created_at, id",
                 0, NULL)
           : NULL;
    int width[16] = { 0 };
    for (int i = 0; r && i < PQnfields(r); i++) {
        for (int row = -1; row < PQntuples(r); row++) {
            const char *text = row < 0 ? PQfname(r, i) : PQgetvalue(r, row, i);
            int len = (int)utf8_count(text, strlen(text));
            width[i] = len > width[i] ? len : width[i];
        }
    }
    for (int row = -1; r && row < PQntuples(r); row++)
        print_row(r, row, width);
    bool ok = r && fflush(stdout) == 0;
    PQclear(r);
    PQfinish(pg);
    return ok;
}

bool admin_key_revoke(const char *database_url, const char *id)
{
    char uuid[UUID_SIZE];
    if (!uuid_parse(id, uuid))
        return log_failure("%s is not the id of a key: see daybookd key list", id);
    const char *const values[] = { uuid };
    PGconn *pg = admin_connect(database_url);
    PGresult *r =
        pg ? admin_query(pg, "the key was not revoked",
                         "update daybook.api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1 "
                         "returning owner",
                         1, values)
           : NULL;
    bool ok = r && (PQntuples(r) == 1 || log_failure("there is no key %s", uuid));
    if (ok)
        fprintf(stderr, "Key %s of owner %s is revoked.\n", uuid, PQgetvalue(r, 0, 0));
    PQclear(r);
    PQfinish(pg);
    return ok;
}

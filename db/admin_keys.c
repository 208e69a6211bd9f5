/* API keys: created, listed and revoked from the command line. */
#include "db/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/sha256.h"
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
};

/* ---- creating ---- */

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
    struct timespec now;
    if (!random_bytes(bytes, sizeof bytes))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    uuid_v7((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, bytes, out);
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

static bool store(const char *database_url, const char *id, const char *token, const char *owner,
                  const char *role, const char *name)
{
    char hash[SHA256_HEX_SIZE];
    sha256_hex(token, strlen(token), hash);
    const char *const values[] = { id, owner, role, name, hash };
    PGconn *pg = admin_connect(database_url);
    PGresult *r = pg ? admin_query(pg, "the key was not made",
                                   "insert into daybook.api_keys (id, owner, role, name, token_hash) "
                                   "values ($1, $2, $3, $4, $5)",
                                   5, values)
                     : NULL;
    PQclear(r);
    PQfinish(pg);
    return r != NULL;
}

bool admin_key_create(const char *database_url, const char *owner, const char *role, const char *name)
{
    char id[UUID_SIZE], token[TOKEN_SIZE];
    if (!check_owner(owner) || !check_role(role) || !check_name(name) || !make_id(id) || !make_token(token) ||
        !store(database_url, id, token, owner, role, name))
        return false;
    printf("%s\n", token);
    bool shown = fflush(stdout) == 0;
    explicit_bzero(token, sizeof token);
    if (!shown)
        return log_failure("the token of the key %s could not be printed: revoke it and create another", id);
    fprintf(stderr, "Key %s of owner %s with role %s. The token above is not shown again.\n", id, owner,
            role);
    return true;
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
                 "name from daybook.api_keys order by created_at, id",
                 0, NULL)
           : NULL;
    int width[8] = { 0 };
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

/* Reads API keys without waiting. */
#include "db/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "db/lanes.h"

/* ---- hashes as text ---- */

static void hash_text(const unsigned char *hash, char out[SHA256_HEX_SIZE])
{
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The table has only hashes of 64 lower-case digits. */
static void hash_parse(const char *text, unsigned char *out)
{
    for (int i = 0; i < SHA256_BYTES; i++)
        out[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
}

/* ---- rows ---- */

/* The columns of both statements. The first is has_keys or paged. */
enum { FLAG, ID, HASH, OWNER, ROLE, REVOKED, EXPIRES_US, RATE, BURST };

static int64_t number_at(const PGresult *r, int row, int col, int64_t if_null)
{
    return PQgetisnull(r, row, col) ? if_null : strtoll(PQgetvalue(r, row, col), NULL, 10);
}

/* `from`: the position of the first column. */
static struct key read_key(const PGresult *r, int row, int from)
{
    struct key k = {
        .role = role_parse(PQgetvalue(r, row, from + ROLE)),
        .revoked = PQgetvalue(r, row, from + REVOKED)[0] == 't',
        .expires_us = number_at(r, row, from + EXPIRES_US, KEY_NEVER_US),
        .rate = (int)number_at(r, row, from + RATE, 0),
        .burst = (int)number_at(r, row, from + BURST, 0),
    };
    hash_parse(PQgetvalue(r, row, from + HASH), k.hash);
    snprintf(k.id, sizeof k.id, "%s", PQgetvalue(r, row, from + ID));
    snprintf(k.owner, sizeof k.owner, "%s", PQgetvalue(r, row, from + OWNER));
    return k;
}

/* In a shared result, the number of the read is the first column. */
static void read_rows(struct keys_read *read, const struct op *op, const PGresult *r)
{
    const int from = op->result_refs != NULL;
    const int rows = op->result_refs ? op->count : PQntuples(r);
    const int first = op->result_refs ? op->first : 0;
    read->keys = memory_zero((size_t)rows + 1, sizeof *read->keys);
    for (int row = first; row < first + rows; row++) {
        const bool flag = PQgetvalue(r, row, from + FLAG)[0] == 't';
        read->any |= flag;
        if (PQgetisnull(r, row, from + ID))
            continue;
        struct key *k = &read->keys[read->count++];
        *k = read_key(r, row, from);
        read->paged += flag;
        if (flag && (!read->last || memcmp(k->hash, read->last->hash, SHA256_BYTES) > 0))
            read->last = k;
    }
}

/* ---- statements ---- */

static void done(struct op *op, PGresult *result, enum err err)
{
    struct keys_read *read = op->user;
    if (err == OK)
        read_rows(read, op, result);
    if (result)
        conn_release_result(result, op->result_refs);
    struct key *keys = read->keys;
    read->done(read, err);
    free(keys);
}

static void send(struct db *db, struct keys_read *r, const struct statement *st)
{
    r->keys = NULL;
    r->count = r->paged = 0;
    r->any = false;
    r->last = NULL;
    for (int i = 0; i < st->param_count; i++)
        r->values[i] = r->texts[i];
    struct op *op = lanes_op_new(db);
    op->statement = st;
    op->values = r->values;
    op->done = done;
    op->user = r;
    enum err err = lanes_send(db, op);
    if (err == OK)
        return;
    lanes_op_free(db, op);
    r->done(r, err);
}

void keys_refresh(struct db *db, struct keys_read *r, int64_t seconds, const unsigned char *after, int page)
{
    snprintf(r->texts[0], sizeof r->texts[0], "%lld", (long long)seconds);
    r->texts[1][0] = '\0';
    if (after)
        hash_text(after, r->texts[1]);
    snprintf(r->texts[2], sizeof r->texts[2], "%d", page);
    send(db, r, &KEY_REFRESH);
}

void keys_find(struct db *db, struct keys_read *r, const unsigned char *hash)
{
    hash_text(hash, r->texts[0]);
    send(db, r, &KEY_FIND);
}

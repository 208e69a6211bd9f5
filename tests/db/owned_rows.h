/* Rows of two owners in every table that has an owner, for the tests that prove that one cannot see the
 * other's. */
#ifndef DAYBOOK_TESTS_DB_OWNED_ROWS_H
#define DAYBOOK_TESTS_DB_OWNED_ROWS_H

#include <ctype.h>
#include <stdbool.h>

#include "tests/db/database.h"

#define ANN      "ann"
#define BOB      "bob"
#define ANN_MARK "sealedword" /* in every text of ann's, and in none of bob's */

enum { MOST_TABLES = 64, MOST_ROWS = 64 };

/* How each owned table is filled: $1 is the owner, $2 a word for all its texts, $3 the start of its ids. A
 * migration that makes another owned table adds a row here. */
static const struct filler {
    const char *table, *sql;
} fillers[] = {
    /* Four lessons: one in three versions, two that read nearly the same, one that superseded another; all of
     * them old enough to be stale. */
    { "lessons",
      "insert into daybook.lessons (owner, id, version, known_from, known_until, at, context, outcome, "
      "takeaway, tags, "
      "evidence, status, status_at, status_reason, validation, superseded_by, similar_keys) "
      "select $1, ($3 || n)::uuid, v, f::timestamptz, u::timestamptz, '2026-01-01', $2 || ' context', $2 || "
      "' outcome', "
      "'Shrink the odds of macro calls by a tenth ' || $2 || ' ' || n, array['macro', $2], array['log ' || "
      "$2], s, "
      "f::timestamptz, r || ' ' || $2, d::json, ($3 || b)::uuid, array[n, 7, 8] "
      "from (values "
      "(1, 1, '2026-01-01', '2026-01-02', 'proposed', 'new', null, null), "
      "(1, 2, '2026-01-02', '2026-01-03', 'validated', 'seen', "
      "'{\"metric\":\"brier\",\"value\":0.1,\"sample_size\":4}', "
      "null), "
      "(1, 3, '2026-01-03', 'infinity', 'validated', 'seen again', "
      "'{\"metric\":\"brier\",\"value\":0.2,\"sample_size\":9}', null), "
      "(2, 1, '2026-01-01', 'infinity', 'proposed', 'new', null, null), "
      "(3, 1, '2026-01-01', '2026-01-05', 'proposed', 'new', null, null), "
      "(3, 2, '2026-01-05', 'infinity', 'superseded', 'better', null, '2'), "
      "(4, 1, '2026-01-01', 'infinity', 'proposed', 'new', null, null)) as x (n, v, f, u, s, r, d, b)" },
    { "idempotency_keys",
      "insert into daybook.idempotency_keys (owner, key, request_hash, status, content_type, location, body, "
      "expires_at) "
      "select $1, 'key-' || n, 'hash ' || $2, 201, 'application/json', '/v1/lessons/' || $3 || n, "
      "convert_to('{\"takeaway\":\"' || $2 || '\"}', 'UTF8'), 'infinity' from generate_series(1, 2) n" },
    { "api_keys", "insert into daybook.api_keys (id, owner, role, name, token_hash) "
                  "select ($3 || n)::uuid, $1, 'agent', $2, encode(sha256(convert_to($1 || n, 'UTF8')), "
                  "'hex') from generate_series(1, "
                  "2) n" },
    { "reader_owners", "insert into daybook.reader_owners (role_name, owner) values ($2 || $3, $1)" },
};

enum { FILLERS = sizeof fillers / sizeof *fillers };

/* The ids of an owner's rows start with this and end with a digit. */
static inline const char *owned_ids(const char *owner)
{
    return strcmp(owner, ANN) == 0 ? "0190aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaa"
                                   : "0190bbbb-bbbb-7bbb-8bbb-bbbbbbbbbbb";
}

static inline void owned_ok(PGconn *pg, const PGresult *r, const char *what)
{
    ExecStatusType status = PQresultStatus(r);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", what,
                  PQerrorMessage(pg));
}

static inline PGresult *owned_query(PGconn *pg, const char *sql)
{
    PGresult *r = PQexec(pg, sql);
    owned_ok(pg, r, sql);
    return r;
}

static inline void owned_run(PGconn *pg, const char *sql)
{
    PQclear(owned_query(pg, sql));
}

/* The names of all owned tables; `count` of them. */
static inline int owned_tables(PGconn *pg, char names[MOST_TABLES][64])
{
    PGresult *r =
        owned_query(pg, "select table_name from information_schema.columns join information_schema.tables "
                        "using (table_schema, table_name) where table_schema = 'daybook' and column_name = "
                        "'owner' and table_type = 'BASE TABLE' order by 1");
    int count = PQntuples(r);
    ck_assert_int_gt(count, 0);
    ck_assert_int_lt(count, MOST_TABLES);
    for (int i = 0; i < count; i++)
        snprintf(names[i], sizeof names[i], "%s", PQgetvalue(r, i, 0));
    PQclear(r);
    return count;
}

/* Fills every owned table with rows of both owners. */
static inline void owned_fill(PGconn *pg)
{
    char names[MOST_TABLES][64];
    int count = owned_tables(pg, names);
    for (int i = 0; i < count; i++) {
        int f = 0;
        while (f < FILLERS && strcmp(fillers[f].table, names[i]) != 0)
            f++;
        ck_assert_msg(f < FILLERS,
                      "the table %s has an owner: give tests/db/owned_rows.h a way to fill it, so that it is "
                      "proved that "
                      "no statement shows its rows to another owner",
                      names[i]);
        for (int bob = 0; bob < 2; bob++) {
            const char *owner = bob ? BOB : ANN;
            const char *const values[] = { owner, bob ? "plainword" : ANN_MARK, owned_ids(owner) };
            static const Oid texts[] = { 25, 25, 25 };
            PGresult *r = PQexecParams(pg, fillers[f].sql, 3, texts, values, NULL, NULL, 0);
            owned_ok(pg, r, names[i]);
            ck_assert_msg(atoi(PQcmdTuples(r)) > 0, "%s was not filled", names[i]);
            PQclear(r);
        }
    }
}

/* A checksum over all rows of the owner in all owned tables, in static storage that two calls share. */
static inline const char *owned_sum(PGconn *pg, const char *owner)
{
    static char sums[2][MOST_TABLES * 34];
    static unsigned next;
    char *out = sums[next++ % 2], names[MOST_TABLES][64];
    int count = owned_tables(pg, names);
    out[0] = 0;
    for (int i = 0; i < count; i++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "select coalesce(md5(string_agg(t::text, '|' order by t::text)), 'none') from daybook.%s t "
                 "where owner = '%s'",
                 names[i], owner);
        PGresult *r = owned_query(pg, sql);
        strcat(strcat(out, PQgetvalue(r, 0, 0)), " ");
        PQclear(r);
    }
    return out;
}

#endif

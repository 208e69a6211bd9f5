/* Migrations and keys, on a real PostgreSQL. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/buf.h"
#include "core/base/sha256.h"
#include "core/base/uuid.h"
#include "db/admin.h"
#include "db/admin_internal.h"
#include "db/migrations.h"
#include "server/log.h"
#include "tests/core/golden.h"
#include "tests/db/database.h"
#include "tests/server/stderr.h"

static const char *url;
static char name[64];

static void setup(void)
{
    log_setup("error", "text");
    snprintf(name, sizeof name, "daybook_test_%d", (int)getpid());
    url = database_create(name);
}

static void teardown(void)
{
    database_drop(name);
}

static void migrate(void)
{
    ck_assert(admin_migrate(url, NULL));
}

/* The message of a rejected migration. */
static void refused(const char *at, const char *expected)
{
    stderr_begin();
    bool ok = admin_migrate(at, NULL);
    const char *said = stderr_end();
    ck_assert(!ok);
    ck_assert_str_eq(said, expected);
}

START_TEST(an_empty_database_gets_every_migration_once)
{
    bool has_keys = true;
    char expected[16];
    snprintf(expected, sizeof expected, "%d", migrations_count);
    ck_assert(admin_migrate(url, &has_keys));
    ck_assert(!has_keys);
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.schema_migrations"), expected);
    char first[64];
    strcpy(first, database_value(url, "select max(applied_at) from daybook.schema_migrations"));
    migrate();
    ck_assert_str_eq(database_value(url, "select max(applied_at) from daybook.schema_migrations"), first);
}
END_TEST

START_TEST(services_that_start_concurrently_take_turns)
{
    enum { SERVICES = 6 };
    pid_t pid[SERVICES];
    for (int i = 0; i < SERVICES; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            _exit(admin_migrate(url, NULL) ? 0 : 1);
    }
    for (int i = 0; i < SERVICES; i++) {
        int status = 1;
        waitpid(pid[i], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    char expected[16];
    snprintf(expected, sizeof expected, "%d", migrations_count);
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.schema_migrations"), expected);
}
END_TEST

START_TEST(a_newer_database_is_refused)
{
    char expected[128];
    migrate();
    database_value(url, "insert into daybook.schema_migrations values (9999, 'later', '')");
    snprintf(expected, sizeof expected,
             "daybookd: the database is at migration 9999, this binary knows %d: use a newer daybookd\n",
             migrations_count);
    refused(url, expected);
}
END_TEST

START_TEST(a_migration_that_was_changed_is_refused_by_name)
{
    migrate();
    database_value(url, "update daybook.schema_migrations set checksum = repeat('0', 64) where number = 1");
    refused(
        url,
        "daybookd: migration 0001_foundation was applied to this database with another text than this binary "
        "has: use the daybookd that it belongs to\n");
}
END_TEST

START_TEST(every_checksum_matches_the_text_of_its_migration)
{
    migrate();
    for (int i = 0; i < migrations_count; i++) {
        char sql[128], checksum[SHA256_HEX_SIZE];
        ck_assert_int_eq(migrations[i].number, i + 1);
        sha256_hex(migrations[i].sql, strlen(migrations[i].sql), checksum);
        snprintf(sql, sizeof sql, "select checksum from daybook.schema_migrations where number = %d", i + 1);
        ck_assert_str_eq(database_value(url, sql), checksum);
    }
}
END_TEST

/* ---- what must exist ---- */

/* After a new migration: GOLDEN=rewrite build/asan/db_test_migrate, then build again. */
START_TEST(the_list_of_objects_is_what_the_migrations_create)
{
    struct arena arena = { 0 };
    struct buf list = { .arena = &arena };
    buf_text(&list, "# What exists when all migrations are applied. tests/db/test_migrate.c writes and "
                    "checks this list.\n");
    if (golden_rewrites()) { /* the list of this binary is not yet that of the migrations */
        stderr_begin();
        (void)!admin_migrate(url, NULL);
        stderr_end();
    } else {
        migrate();
    }
    PGconn *pg = database_connect(url);
    PGresult *r = database_query(pg, admin_verify_objects_sql);
    for (int i = 0; i < PQntuples(r); i++)
        buf_fmt(&list, "%s\n", PQgetvalue(r, i, 0));
    PQclear(r);
    PQfinish(pg);
    golden_check(&arena, "../../db/objects.txt", buf_string(&list));
    arena_release(&arena);
}
END_TEST

START_TEST(a_database_that_lacks_something_is_refused_by_name)
{
    static const struct {
        const char *drop, *named;
    } cases[] = {
        { "drop index daybook.lessons_newest", "lacks 1 of" },
        { "drop index daybook.lessons_newest", "index lessons_newest" },
        { "alter table daybook.lessons drop column status_reason", "column lessons.status_reason" },
        { "drop policy reader on daybook.lessons", "policy lessons.reader" },
        { "drop function daybook.vector_columns", "function vector_columns" },
        { "alter table daybook.lessons drop constraint lessons_status_check",
          "constraint lessons.lessons_status_check" },
        { "drop extension pg_trgm", "extension pg_trgm" },
        { "drop table daybook.episodic_evictions, daybook.episodic_vectors",
          "table episodic_evictions, table episodic_vectors, column" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        url = database_create(name);
        migrate();
        database_value(url, cases[i].drop);
        stderr_begin();
        bool ok = admin_migrate(url, NULL);
        const char *said = stderr_end();
        ck_assert(!ok);
        ck_assert_msg(strstr(said, cases[i].named) != NULL, "%s is not in: %s", cases[i].named, said);
    }
}
END_TEST

START_TEST(a_schema_with_tables_and_no_record_of_migrations_is_refused)
{
    database_value(url, "create schema daybook; create table daybook.lessons (owner text)");
    refused(url,
            "daybookd: the schema daybook has the table lessons and no record of migrations: it was restored "
            "in part; restore a complete backup into an empty database\n");
}
END_TEST

START_TEST(extensions_move_out_of_the_schema_and_serve_in_either_place)
{
    static const char where[] =
        "select string_agg(distinct extnamespace::regnamespace::text, ',') from pg_extension "
        "where extname in ('vector', 'pg_trgm')";
    migrate();
    ck_assert_str_eq(database_value(url, where), "public");
    database_value(url,
                   "alter extension vector set schema daybook; alter extension pg_trgm set schema daybook");
    migrate();
    ck_assert_str_eq(database_value(url, where), "public");
}
END_TEST

/* ---- newer databases ---- */

START_TEST(a_newer_database_is_used_if_its_migrations_allow_this_binary)
{
    char sql[256], expected[160];
    migrate();
    snprintf(sql, sizeof sql,
             "insert into daybook.schema_migrations (number, name, checksum, compatible_from) "
             "values (%d, 'expand', '', %d), (%d, 'more', '', %d)",
             migrations_count + 1, migrations_count, migrations_count + 2, migrations_count - 1);
    database_value(url, sql);
    migrate();
    snprintf(sql, sizeof sql, "update daybook.schema_migrations set compatible_from = %d where number = %d",
             migrations_count + 1, migrations_count + 1);
    database_value(url, sql);
    snprintf(expected, sizeof expected,
             "daybookd: the database is at migration %d, this binary knows %d: use a newer daybookd\n",
             migrations_count + 2, migrations_count);
    refused(url, expected);
}
END_TEST

START_TEST(a_record_of_an_earlier_release_gets_the_new_column)
{
    migrate();
    database_value(url, "alter table daybook.schema_migrations drop column compatible_from");
    migrate();
    database_value(url,
                   "delete from daybook.schema_migrations where number > 0; drop schema daybook cascade");
    migrate();
    ck_assert_str_eq(
        database_value(url, "select bool_and(compatible_from <= number) from daybook.schema_migrations"),
        "t");
}
END_TEST

static void make_role(const char *suffix)
{
    char sql[256];
    snprintf(sql, sizeof sql, "create role %s_%s", name, suffix);
    database_value(database_server, sql);
}

static void drop_role(const char *suffix)
{
    char sql[256];
    snprintf(sql, sizeof sql, "drop owned by %s_%s", name, suffix);
    database_value(url, sql);
    snprintf(sql, sizeof sql, "drop role %s_%s", name, suffix);
    database_value(database_server, sql);
}

/* Continues as that role. Only the service itself may connect to its private PostgreSQL. */
static void be(const char *suffix, PGconn *pg)
{
    char sql[256];
    snprintf(sql, sizeof sql, "set session authorization %s_%s", name, suffix);
    PGresult *r = PQexec(pg, sql);
    ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(pg));
    PQclear(r);
}

static const char *value_as(PGconn *pg, const char *sql)
{
    static char value[256];
    PGresult *r = PQexec(pg, sql);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    snprintf(value, sizeof value, "%s", state ? state : PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return value;
}

START_TEST(a_reader_sees_the_rows_of_its_owner_and_nothing_else)
{
    char sql[256];
    migrate();
    make_role("ann");
    make_role("bob");
    snprintf(sql, sizeof sql, "grant daybook_reader to %s_ann, %s_bob", name, name);
    database_value(url, sql);
    snprintf(sql, sizeof sql, "insert into daybook.reader_owners values ('%s_ann', 'desk-7')", name);
    database_value(url, sql);
    database_value(url, "create table daybook.things (owner text, what text);"
                        "insert into daybook.things values ('desk-7', 'mine'), ('desk-8', 'theirs');"
                        "select daybook.protect_owned('daybook.things')");
    PGconn *pg = database_connect(url);
    ck_assert_str_eq(value_as(pg, "select count(*) from daybook.things"), "2");
    be("ann", pg);
    ck_assert_str_eq(value_as(pg, "select string_agg(what, ',') from daybook.things"), "mine");
    ck_assert_str_eq(value_as(pg, "insert into daybook.things values ('desk-7', 'new')"), "42501");
    ck_assert_str_eq(value_as(pg, "select token_hash from daybook.api_keys"), "42501");
    ck_assert_str_eq(value_as(pg, "select body from daybook.idempotency_keys"), "42501");
    ck_assert_str_eq(value_as(pg, "select owner from daybook.reader_owners"), "42501");
    ck_assert_str_eq(value_as(pg, "select daybook.protect_owned('daybook.things')"), "42501");
    PQfinish(pg);
    pg = database_connect(url);
    be("bob", pg); /* a reader without an owner */
    ck_assert_str_eq(value_as(pg, "select count(*) from daybook.things"), "0");
    PQfinish(pg);
    drop_role("ann");
    drop_role("bob");
}
END_TEST

/* The message of a migration by a role without any rights. */
static void refused_as(const char *suffix, const char *expected)
{
    char words[256];
    snprintf(words, sizeof words, "dbname=%s options='-c role=%s_%s'", name, name, suffix);
    stderr_begin();
    bool ok = admin_migrate(database_url(words), NULL);
    const char *said = stderr_end();
    ck_assert(!ok);
    ck_assert_msg(strstr(said, expected) != NULL, "%s is not in: %s", expected, said);
}

START_TEST(the_message_names_the_missing_right_of_a_role)
{
    char sql[256];
    make_role("eve");
    refused_as("eve", "may not create a schema in the database daybook_test_");
    snprintf(sql, sizeof sql, "grant create on database %s to %s_eve", name, name);
    database_value(url, sql);
    refused_as(
        "eve",
        "may not create the extension vector: let a superuser run CREATE EXTENSION vector in the database");
    ck_assert_str_eq(database_value(url, "select to_regnamespace('daybook') is null"), "t");
    migrate();
    refused_as("eve", "may not read the schema daybook");
    drop_role("eve");
}
END_TEST

START_TEST(an_unreadable_url_is_refused_without_its_password)
{
    refused("mysql://user:secret@host/db", "daybookd: invalid database URL: expected "
                                           "postgresql://user:password@host:5432/database\n");
}
END_TEST

START_TEST(a_database_that_is_not_utf8_is_refused)
{
    char sql[256], expected[256];
    database_drop(name);
    snprintf(sql, sizeof sql, "create database %s encoding latin1 locale 'C' template template0", name);
    database_value(database_server, sql);
    snprintf(expected, sizeof expected,
             "daybookd: the database %s has the encoding LATIN1: Daybook needs UTF8\n", name);
    refused(url, expected);
}
END_TEST

START_TEST(comments_name_the_thing_and_ask_no_question)
{
    migrate();
    ck_assert_str_eq(
        database_value(
            url,
            "select string_agg(d.description, E'\\n') from pg_description d "
            "where d.description ~ "
            "'^(What|Whose|Of|When|Where|Which|Who|Why|How|Whether|Since|From when|Until when)\\M' "
            "and (exists (select from pg_class c where d.classoid = 'pg_class'::regclass and c.oid = "
            "d.objoid "
            "             and c.relnamespace = 'daybook'::regnamespace) "
            "  or exists (select from pg_proc p where d.classoid = 'pg_proc'::regclass and p.oid = d.objoid "
            "             and p.pronamespace = 'daybook'::regnamespace))"),
        "");
}
END_TEST

/* ---- keys ---- */

/* Creates a key and returns its token, in static storage. */
static const char *create_key(const char *owner, const char *role, const char *label)
{
    static char token[128];
    int before = dup(STDOUT_FILENO), now = memfd_create("stdout", MFD_CLOEXEC);
    fflush(stdout);
    dup2(now, STDOUT_FILENO);
    stderr_begin();
    bool ok = admin_key_create(url, &(struct admin_key){ .owner = owner, .role = role, .name = label });
    stderr_end();
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    ssize_t n = pread(now, token, sizeof token - 1, 0);
    close(before);
    close(now);
    ck_assert(ok && n > 0 && token[n - 1] == '\n');
    token[n - 1] = 0;
    return token;
}

START_TEST(a_token_is_shown_once_and_stored_as_a_hash)
{
    bool has_keys = false;
    char token[128], hash[SHA256_HEX_SIZE], sql[256];
    migrate();
    strcpy(token, create_key("desk-7", "agent", "Ann's bot \xe2\x82\xac"));
    ck_assert_uint_eq(strlen(token), 47);
    ck_assert_int_eq(strncmp(token, "dbk_", 4), 0);
    ck_assert_uint_eq(strspn(token + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                      43);
    ck_assert_str_ne(create_key("desk-7", "agent", NULL), token);
    sha256_hex(token, strlen(token), hash);
    snprintf(sql, sizeof sql,
             "select owner || ' ' || role || ' ' || name from daybook.api_keys where token_hash = '%s'",
             hash);
    ck_assert_str_eq(database_value(url, sql), "desk-7 agent Ann's bot \xe2\x82\xac");
    snprintf(sql, sizeof sql, "select count(*) from daybook.api_keys as k where k::text like '%%%s%%'",
             token + 4);
    ck_assert_str_eq(database_value(url, sql), "0");
    ck_assert(admin_migrate(url, &has_keys));
    ck_assert(has_keys);
}
END_TEST

START_TEST(a_revoked_key_stays_in_the_table)
{
    char id[UUID_SIZE], at[64];
    bool has_keys = false;
    migrate();
    create_key("a", "reader", NULL);
    strcpy(id, database_value(url, "select id from daybook.api_keys"));
    stderr_begin();
    ck_assert(admin_key_revoke(url, id));
    strcpy(at, database_value(url, "select revoked_at from daybook.api_keys"));
    ck_assert_str_ne(at, "");
    ck_assert(admin_key_revoke(url, id));
    ck_assert_str_eq(database_value(url, "select revoked_at from daybook.api_keys"), at);
    ck_assert(!admin_key_revoke(url, "01890a5d-ac96-774b-bcce-b302099a8057"));
    ck_assert(!admin_key_revoke(url, "x"));
    stderr_end();
    ck_assert(admin_migrate(url, &has_keys));
    ck_assert(has_keys);
}
END_TEST

START_TEST(invalid_owners_roles_and_names_are_rejected)
{
    static char long_owner[66], long_name[102];
    memset(long_owner, 'a', 65);
    memset(long_name, 'a', 101);
    const char *const bad[][3] = {
        { "", "agent", NULL },         { "Ann", "agent", NULL }, { "a b", "agent", NULL },
        { long_owner, "agent", NULL }, { "a", "", NULL },        { "a", "root", NULL },
        { "a", "agent", "" },          { "a", "agent", "a\nb" }, { "a", "agent", "\xff" },
        { "a", "agent", long_name },
    };
    migrate();
    stderr_begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(
            !admin_key_create(
                url, &(struct admin_key){ .owner = bad[i][0], .role = bad[i][1], .name = bad[i][2] }),
            "taken: %zu", i);
    stderr_end();
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys"), "0");
    long_owner[64] = 0;
    create_key(long_owner, "admin", NULL);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &an_empty_database_gets_every_migration_once,
        &services_that_start_concurrently_take_turns,
        &a_newer_database_is_refused,
        &a_migration_that_was_changed_is_refused_by_name,
        &every_checksum_matches_the_text_of_its_migration,
        &the_list_of_objects_is_what_the_migrations_create,
        &a_database_that_lacks_something_is_refused_by_name,
        &a_schema_with_tables_and_no_record_of_migrations_is_refused,
        &extensions_move_out_of_the_schema_and_serve_in_either_place,
        &a_newer_database_is_used_if_its_migrations_allow_this_binary,
        &a_record_of_an_earlier_release_gets_the_new_column,
        &a_reader_sees_the_rows_of_its_owner_and_nothing_else,
        &the_message_names_the_missing_right_of_a_role,
        &an_unreadable_url_is_refused_without_its_password,
        &a_database_that_is_not_utf8_is_refused,
        &comments_name_the_thing_and_ask_no_question,
        &a_token_is_shown_once_and_stored_as_a_hash,
        &a_revoked_key_stays_in_the_table,
        &invalid_owners_roles_and_names_are_rejected,
    };
    return database_tests("migrate", tests, sizeof tests / sizeof *tests, setup, teardown);
}

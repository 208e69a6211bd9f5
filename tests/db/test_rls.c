/* Row-level security: a role that reads with SQL sees only the rows of its owner in every owned table, and
 * can change none. */
#include <check.h>

#include "tests/db/owned_rows.h"

/* Owned tables that no reader may read, each with the reason. */
static const struct {
    const char *table, *reason;
} closed[] = {
    { "api_keys", "readers may not see keys" },
    { "idempotency_keys", "stored responses are internal" },
    { "reader_owners", "readers may not see other readers" },
};

static char name[64];
static PGconn *pg;

static void as_admin(const char *fmt, const char *role)
{
    char sql[256];
    snprintf(sql, sizeof sql, fmt, role);
    owned_run(pg, sql);
}

static void setup(void)
{
    pg = database_migrated("rls");
    snprintf(name, sizeof name, "%s", PQdb(pg));
    owned_fill(pg);
    as_admin("create role %s_mapped login in role daybook_reader", name);
    as_admin("create role %s_unmapped login in role daybook_reader", name);
    as_admin("create role %s_stranger login", name);
    as_admin("insert into daybook.reader_owners values ('%s_mapped', '" BOB "')", name);
}

static void teardown(void)
{
    database_finish(pg);
    pg = database_connect(database_server);
    as_admin("drop role %s_mapped", name);
    as_admin("drop role %s_unmapped", name);
    as_admin("drop role %s_stranger", name);
    PQfinish(pg);
}

/* Continues as that role, as if it had logged in. */
static void become(const char *suffix)
{
    char sql[256];
    snprintf(sql, sizeof sql, "set session authorization %s_%s", name, suffix);
    owned_run(pg, sql);
}

static bool is_closed(const char *table)
{
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        if (strcmp(closed[i].table, table) == 0)
            return true;
    return false;
}

/* The SQLSTATE of a statement; "" if it succeeded. */
static const char *state_of(const char *fmt, const char *table)
{
    static char state[8];
    char sql[256];
    snprintf(sql, sizeof sql, fmt, table);
    PGresult *r = PQexec(pg, sql);
    const char *field = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    snprintf(state, sizeof state, "%s", field ? field : "");
    PQclear(r);
    return state;
}

static int count_of(const char *table, const char *where)
{
    char sql[256];
    snprintf(sql, sizeof sql, "select count(*) from daybook.%s where %s", table, where);
    PGresult *r = database_query(pg, sql);
    int count = atoi(PQgetvalue(r, 0, 0));
    PQclear(r);
    return count;
}

START_TEST(a_mapped_reader_sees_all_rows_of_its_owner_and_no_others)
{
    char tables[MOST_TABLES][64];
    int expected[MOST_TABLES];
    int count = owned_tables(pg, tables), open = 0;
    for (int i = 0; i < count; i++) {
        expected[i] = count_of(tables[i], "owner = '" BOB "'");
        ck_assert_int_gt(count_of(tables[i], "owner = '" ANN "'"), 0);
    }
    become("mapped");
    for (int i = 0; i < count; i++) {
        if (is_closed(tables[i])) {
            ck_assert_str_eq(state_of("select 1 from daybook.%s", tables[i]), "42501");
            continue;
        }
        ck_assert_msg(state_of("select 1 from daybook.%s", tables[i])[0] == 0,
                      "readers may not read %s: let its migration call protect_owned, or list it here",
                      tables[i]);
        ck_assert_int_eq(count_of(tables[i], "true"), expected[i]);
        ck_assert_int_eq(count_of(tables[i], "owner <> '" BOB "'"), 0);
        open++;
    }
    ck_assert_int_gt(open, 0);
}
END_TEST

START_TEST(a_reader_without_a_mapping_sees_nothing)
{
    char tables[MOST_TABLES][64];
    int count = owned_tables(pg, tables);
    become("unmapped");
    for (int i = 0; i < count; i++) {
        if (is_closed(tables[i]))
            ck_assert_str_eq(state_of("select 1 from daybook.%s", tables[i]), "42501");
        else
            ck_assert_int_eq(count_of(tables[i], "true"), 0);
    }
}
END_TEST

START_TEST(a_role_that_is_no_reader_sees_nothing)
{
    char tables[MOST_TABLES][64];
    int count = owned_tables(pg, tables);
    become("stranger");
    for (int i = 0; i < count; i++)
        ck_assert_str_eq(state_of("select 1 from daybook.%s", tables[i]), "42501");
}
END_TEST

START_TEST(no_reader_can_change_anything)
{
    static const char *const changes[] = {
        "update daybook.%s set owner = '" BOB "'",
        "delete from daybook.%s",
        "truncate daybook.%s",
        "insert into daybook.%s (owner) values ('" BOB "')",
        "select * from daybook.%s for update",
        "alter table daybook.%s disable row level security",
        "drop table daybook.%s",
        "create policy mine on daybook.%s using (true)",
        "select daybook.protect_owned('daybook.%s')",
    };
    char tables[MOST_TABLES][64];
    int count = owned_tables(pg, tables);
    char before[2][33];
    strcpy(before[0], owned_sum(pg, ANN));
    strcpy(before[1], owned_sum(pg, BOB));
    become("mapped");
    for (int i = 0; i < count; i++)
        for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
            char sql[256];
            snprintf(sql, sizeof sql, changes[c], tables[i]);
            ck_assert_msg(strcmp(state_of("%s", sql), "42501") == 0, "%s: %s", sql, PQerrorMessage(pg));
        }
    owned_run(pg, "reset session authorization");
    ck_assert_str_eq(owned_sum(pg, ANN), before[0]);
    ck_assert_str_eq(owned_sum(pg, BOB), before[1]);
}
END_TEST

START_TEST(removing_a_mapping_takes_effect_immediately)
{
    become("mapped");
    ck_assert_int_gt(count_of("lessons", "true"), 0);
    owned_run(pg, "reset session authorization");
    owned_run(pg, "delete from daybook.reader_owners where owner = '" BOB "'");
    become("mapped");
    ck_assert_int_eq(count_of("lessons", "true"), 0);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &a_mapped_reader_sees_all_rows_of_its_owner_and_no_others,
        &a_reader_without_a_mapping_sees_nothing,
        &a_role_that_is_no_reader_sees_nothing,
        &no_reader_can_change_anything,
        &removing_a_mapping_takes_effect_immediately,
    };
    return database_tests("rls", tests, sizeof tests / sizeof *tests, setup, teardown);
}

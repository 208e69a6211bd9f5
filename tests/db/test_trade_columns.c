/* Every member of a trade that the ledger writes has its place in the statements and in the table. */
#include "core/ledger/trade_members.h"
#include "db/statement.h"
#include "statements.gen.h"
#include "tests/db/database.h"

static PGconn *pg;

static void setup(void)
{
    pg = database_migrated("trade_columns");
}

static void teardown(void)
{
    database_finish(pg);
}

/* tick_write names each column that it updates: a forgotten one would keep its first value. */
START_TEST(a_tick_updates_every_member_that_it_may_change)
{
    for (size_t i = 0; i < trade_members_count; i++) {
        const struct trade_member *m = &trade_members[i];
        char set[128];
        if (!(m->forms & (FORM_STORE | FORM_STORE_EXIT)) || strcmp(m->name, "id") == 0)
            continue;
        snprintf(set, sizeof set, " %s = r.%s", m->name, m->name);
        ck_assert_msg(strstr(TICK_WRITE.sql, set), "tick_write does not set %s", m->name);
    }
}
END_TEST

/* A new trade is inserted by the names of the columns. Its situation goes to a table of its own. */
START_TEST(a_new_trade_has_a_column_for_every_member)
{
    for (size_t i = 0; i < trade_members_count; i++) {
        const struct trade_member *m = &trade_members[i];
        char sql[256];
        if (!(m->forms & (FORM_STORE | FORM_STORE_ENTRY)))
            continue;
        const char *table = strcmp(m->name, "situation") == 0 ? NULL : "trade_history";
        if (!table) {
            ck_assert_ptr_nonnull(strstr(TICK_WRITE.sql, "situation text"));
            continue;
        }
        snprintf(sql, sizeof sql,
                 "select 1 from pg_attribute where attrelid = 'daybook.%s'::regclass and attname = '%s'",
                 table, m->name);
        PGresult *r = database_query(pg, sql);
        ck_assert_msg(PQntuples(r) == 1, "%s has no column %s", table, m->name);
        PQclear(r);
    }
}
END_TEST

START_TEST(a_tick_reads_every_member_of_an_open_trade)
{
    for (size_t i = 0; i < trade_members_count; i++)
        if (trade_members[i].forms & FORM_OPEN_ROW)
            ck_assert_msg(strstr(TICK_STATE.sql, trade_members[i].name), "tick_state does not read %s",
                          trade_members[i].name);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &a_tick_updates_every_member_that_it_may_change,
        &a_new_trade_has_a_column_for_every_member,
        &a_tick_reads_every_member_of_an_open_trade,
    };
    return database_tests("trade_columns", tests, sizeof tests / sizeof *tests, setup, teardown);
}

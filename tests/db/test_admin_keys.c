/* Keys with an expiry and a rate, and their rotation, on a real PostgreSQL. */
#include <fcntl.h>

#include "core/base/sha256.h"
#include "core/base/uuid.h"
#include "tests/db/database.h"
#include "tests/server/stderr.h"

static const char *url;
static char name[64];

static void setup(void)
{
    log_setup("error", "text");
    snprintf(name, sizeof name, "daybook_test_%d_keys", (int)getpid());
    url = database_create(name);
    ck_assert(admin_migrate(url, NULL));
}

static void teardown(void)
{
    database_drop(name);
}

/* The token goes to /dev/null. Returns what was said on stderr. */
static const char *quietly(bool expected, const struct admin_key *key, const char *rotate,
                           const char *overlap, const char *expires)
{
    int before = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    dup2(nowhere, STDOUT_FILENO);
    stderr_begin();
    bool ok = key ? admin_key_create(url, key) : admin_key_rotate(url, rotate, overlap, expires);
    const char *said = stderr_end();
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    close(nowhere);
    ck_assert_msg(ok == expected, "%s", said);
    return said;
}

static const char *first_id(void)
{
    static char id[UUID_SIZE];
    strcpy(id, database_value(url, "select id from daybook.api_keys order by id limit 1"));
    return id;
}

#define ROW "expires_at - created_at between interval '89 days' and interval '91 days', rate, burst"

START_TEST(a_key_has_the_expiry_and_the_rate_that_it_was_created_with)
{
    const char *said =
        quietly(true, &(struct admin_key){ "a", "agent", "n", "90d", "5", "20" }, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(said, "It expires at 2"));
    ck_assert_ptr_nonnull(strstr(said, "5 requests a second, and 20 at once"));
    ck_assert_str_eq(database_value(url, "select (" ROW ")::text from daybook.api_keys"), "(t,5,20)");
}
END_TEST

START_TEST(a_date_is_the_start_of_its_day_and_the_burst_is_the_rate_by_default)
{
    quietly(true, &(struct admin_key){ .owner = "a", .role = "agent", .expires = "2999-01-31", .rate = "7" },
            NULL, NULL, NULL);
    ck_assert_str_eq(
        database_value(
            url, "select (expires_at = '2999-01-31T00:00:00Z', rate, burst)::text from daybook.api_keys"),
        "(t,7,7)");
    quietly(true,
            &(struct admin_key){ .owner = "b", .role = "agent", .expires = "2999-01-31T10:00:00+02:00" },
            NULL, NULL, NULL);
    ck_assert_str_eq(
        database_value(url,
                       "select expires_at = '2999-01-31T08:00:00Z' from daybook.api_keys where owner = 'b'"),
        "t");
}
END_TEST

START_TEST(invalid_expiries_and_rates_are_rejected)
{
    static const struct admin_key bad[] = {
        { "a", "agent", NULL, "", NULL, NULL },           { "a", "agent", NULL, "soon", NULL, NULL },
        { "a", "agent", NULL, "2999-02-30", NULL, NULL }, { "a", "agent", NULL, "2020-01-01", NULL, NULL },
        { "a", "agent", NULL, "0d", NULL, NULL },         { "a", "agent", NULL, "-1d", NULL, NULL },
        { "a", "agent", NULL, NULL, "0", NULL },          { "a", "agent", NULL, NULL, "100001", NULL },
        { "a", "agent", NULL, NULL, "1.5", NULL },        { "a", "agent", NULL, NULL, "", NULL },
        { "a", "agent", NULL, NULL, "5", "0" },           { "a", "agent", NULL, NULL, "5", "many" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_ptr_nonnull(strstr(quietly(false, &bad[i], NULL, NULL, NULL), "daybookd: --"));
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys"), "0");
}
END_TEST

START_TEST(a_rotated_key_is_replaced_by_one_that_may_do_the_same)
{
    quietly(true, &(struct admin_key){ "a", "reader", "n", "90d", "5", "20" }, NULL, NULL, NULL);
    const char *old = first_id();
    ck_assert_ptr_nonnull(strstr(quietly(true, NULL, old, NULL, NULL), "is revoked"));
    ck_assert_str_eq(database_value(url, "select (owner, role, name, " ROW ")::text from daybook.api_keys "
                                         "where revoked_at is null"),
                     "(a,reader,n,t,5,20)");
    ck_assert_str_eq(database_value(url,
                                    "select count(*) from daybook.api_keys where revoked_at is not null and "
                                    "rotated_at is not null and expires_at <= now()"),
                     "1");
}
END_TEST

START_TEST(with_an_overlap_the_old_key_ends_later_but_never_later_than_before)
{
    quietly(true, &(struct admin_key){ .owner = "a", .role = "agent" }, NULL, NULL, NULL);
    quietly(true, NULL, first_id(), "2h", NULL);
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys where revoked_at is null and "
                                         "expires_at - rotated_at = interval '2 hours'"),
                     "1");
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys where expires_at is null"),
                     "1");
    database_value(url, "delete from daybook.api_keys");
    quietly(true, &(struct admin_key){ .owner = "a", .role = "agent", .expires = "1h" }, NULL, NULL, NULL);
    quietly(true, NULL, first_id(), "2h", "30d");
    ck_assert_str_eq(database_value(url,
                                    "select count(*) from daybook.api_keys where rotated_at is not null and "
                                    "expires_at < now() + interval '61 minutes'"),
                     "1");
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys where rotated_at is null and "
                                         "expires_at > now() + interval '29 days'"),
                     "1");
}
END_TEST

START_TEST(a_key_is_rotated_once_and_a_revoked_one_never)
{
    quietly(true, &(struct admin_key){ .owner = "a", .role = "agent" }, NULL, NULL, NULL);
    const char *id = first_id();
    quietly(true, NULL, id, "1h", NULL);
    char said[96] = "was rotated before: rotate the key that replaced it, ";
    strcat(said, database_value(url, "select id from daybook.api_keys where rotated_at is null"));
    ck_assert_ptr_nonnull(strstr(quietly(false, NULL, id, NULL, NULL), said));
    database_value(url, "update daybook.api_keys set rotated_at = null, revoked_at = now()");
    ck_assert_ptr_nonnull(strstr(quietly(false, NULL, id, NULL, NULL), "is revoked: create another"));
    ck_assert_ptr_nonnull(
        strstr(quietly(false, NULL, "01890a5d-ac96-774b-bcce-b302099a8057", NULL, NULL), "there is no key"));
    ck_assert_ptr_nonnull(strstr(quietly(false, NULL, "x", NULL, NULL), "is not the id of a key"));
    ck_assert_ptr_nonnull(strstr(quietly(false, NULL, id, "soon", NULL), "--overlap is a duration"));
    ck_assert_ptr_nonnull(strstr(quietly(false, NULL, id, NULL, "soon"), "--expires is a date"));
    ck_assert_str_eq(database_value(url, "select count(*) from daybook.api_keys"), "2");
}
END_TEST

START_TEST(an_older_service_can_go_on_creating_and_revoking_keys)
{
    database_value(url, "insert into daybook.api_keys (id, owner, role, name, token_hash) "
                        "values (gen_random_uuid(), 'a', 'agent', null, repeat('a', 64))");
    database_value(url, "update daybook.api_keys set revoked_at = coalesce(revoked_at, now())");
    ck_assert_str_eq(
        database_value(url, "select count(*) from daybook.api_keys where "
                            "greatest(created_at, revoked_at, rotated_at) > now() - interval '1 minute'"),
        "1");
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &a_key_has_the_expiry_and_the_rate_that_it_was_created_with,
        &a_date_is_the_start_of_its_day_and_the_burst_is_the_rate_by_default,
        &invalid_expiries_and_rates_are_rejected,
        &a_rotated_key_is_replaced_by_one_that_may_do_the_same,
        &with_an_overlap_the_old_key_ends_later_but_never_later_than_before,
        &a_key_is_rotated_once_and_a_revoked_one_never,
        &an_older_service_can_go_on_creating_and_revoking_keys,
    };
    return database_tests("admin_keys", tests, sizeof tests / sizeof *tests, setup, teardown);
}

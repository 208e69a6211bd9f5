/* The servers that a database URL names, the order in which they are tried, and what libpq says about them.
 */
#include <stdlib.h>
#include <string.h>

#include "db/hosts.h"
#include "tests/core/unit.h"

/* A name that needs no look-up fails at once, and so does a socket that is not there. */
static const char three[] = "postgresql://u@/d?host=/nowhere/a,/nowhere/b,/nowhere/c&port=1,2,3";

static const char *tried(struct hosts *h, struct hosts_walk *w, char name[HOSTS_NAME_SIZE])
{
    PGconn *pg = hosts_connect(h, w);
    hosts_name(pg, name);
    PQfinish(pg);
    return name;
}

START_TEST(a_round_tries_each_host_once_with_its_port)
{
    char name[HOSTS_NAME_SIZE];
    struct hosts *h = hosts_read(three);
    struct hosts_walk w;
    hosts_begin(h, &w);
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/a:1");
    ck_assert(hosts_next(h, &w));
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/b:2");
    ck_assert(hosts_next(h, &w));
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/c:3");
    ck_assert(!hosts_next(h, &w));
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/a:1");
}
END_TEST

START_TEST(rounds_begin_at_the_server_that_was_usable_last)
{
    char name[HOSTS_NAME_SIZE];
    struct hosts *h = hosts_read("host=/nowhere/a,/nowhere/b,/nowhere/c port=7");
    struct hosts_walk first, other;
    hosts_begin(h, &first);
    hosts_next(h, &first);
    hosts_found(h, &first);
    hosts_begin(h, &other);
    ck_assert_str_eq(tried(h, &other, name), "/nowhere/b:7");
    hosts_leave(h, &first);
    hosts_begin(h, &other);
    ck_assert_str_eq(tried(h, &other, name), "/nowhere/c:7");
    ck_assert(hosts_next(h, &other));
    ck_assert_str_eq(tried(h, &other, name), "/nowhere/a:7");
}
END_TEST

START_TEST(an_attempt_is_shorter_with_several_servers_and_connect_timeout_outranks_both)
{
    const struct {
        const char *url;
        int64_t s;
    } cases[] = {
        { "host=/nowhere", 5 },
        { "host=/nowhere,/nowhere/else", 2 },
        { "host=/nowhere,/nowhere/else connect_timeout=9", 9 },
        { "host=/nowhere connect_timeout=0", 5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hosts *h = hosts_read(cases[i].url);
        struct hosts_walk w;
        hosts_begin(h, &w);
        PQfinish(hosts_connect(h, &w));
        ck_assert_int_eq(hosts_limit_us(h, &w), cases[i].s * 1000 * 1000);
    }
}
END_TEST

START_TEST(an_address_list_and_a_service_file_are_understood)
{
    char name[HOSTS_NAME_SIZE], file[] = "/tmp/daybook-service-XXXXXX";
    struct hosts_walk w;
    struct hosts *h = hosts_read("host=one.invalid,two.invalid hostaddr=127.0.0.1,::1 port=1");
    hosts_begin(h, &w);
    ck_assert_str_eq(tried(h, &w, name), "one.invalid:1(127.0.0.1)");
    ck_assert(hosts_next(h, &w));
    ck_assert_str_eq(tried(h, &w, name), "two.invalid:1(::1)");

    FILE *f = fdopen(mkstemp(file), "w");
    fputs("[desk]\nhost=/nowhere/x,/nowhere/y\nport=4,5\n", f);
    fclose(f);
    setenv("PGSERVICEFILE", file, 1);
    h = hosts_read("service=desk");
    hosts_begin(h, &w);
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/x:4");
    ck_assert(hosts_next(h, &w));
    ck_assert_str_eq(tried(h, &w, name), "/nowhere/y:5");
    remove(file);
}
END_TEST

START_TEST(a_list_with_a_gap_is_rejected)
{
    ck_assert_ptr_null(hosts_read("host=/nowhere,,/nowhere/else"));
    ck_assert_ptr_null(hosts_read("host=a,b hostaddr=127.0.0.1,"));
    ck_assert_ptr_null(hosts_read("postgresql://u:secret@[::1/d"));
}
END_TEST

START_TEST(the_cause_is_read_from_the_sqlstate)
{
    const struct {
        const char *message;
        enum hosts_cause cause;
    } cases[] = {
        { "connection to server at \"h\" (1.2.3.4), port 5432 failed: FATAL:  53300: sorry, too many "
          "clients\n"
          "LOCATION:  InitProcess, proc.c:351\n",
          CAUSE_CONNECTION_LIMIT },
        { "failed: FATAL:  57P03: the database system is starting up\n", CAUSE_STARTING },
        { "failed: FATAL:  28P01: password authentication failed for user \"u\"\n", CAUSE_REJECTED },
        { "failed: session is read-only\n", CAUSE_READ_ONLY },
        { "failed: server is in hot standby mode\n", CAUSE_READ_ONLY },
        { "failed: Connection refused\n\tIs the server running on that host?\n", CAUSE_UNREACHABLE },
        { "", CAUSE_UNREACHABLE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(hosts_cause_of(cases[i].message), cases[i].cause);
}
END_TEST

START_TEST(all_lines_of_a_message_become_one_without_the_source_line)
{
    char out[HOSTS_REASON_SIZE];
    ck_assert_str_eq(hosts_reason("one\n\ttwo\nLOCATION:  f, file.c:1\n\nthree\n", out), "one; two; three");
    ck_assert_str_eq(hosts_reason("", out), "");
    char *much = malloc(5000);
    memset(much, 'x', 4999);
    much[4999] = 0;
    ck_assert_uint_lt(strlen(hosts_reason(much, out)), sizeof out);
    free(much);
}
END_TEST

UNIT_MAIN("hosts", a_round_tries_each_host_once_with_its_port,
          rounds_begin_at_the_server_that_was_usable_last,
          an_attempt_is_shorter_with_several_servers_and_connect_timeout_outranks_both,
          an_address_list_and_a_service_file_are_understood, a_list_with_a_gap_is_rejected,
          the_cause_is_read_from_the_sqlstate, all_lines_of_a_message_become_one_without_the_source_line)

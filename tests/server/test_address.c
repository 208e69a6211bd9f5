/* Addresses, networks, and the client behind a trusted proxy. */
#include <check.h>
#include <netdb.h>
#include <string.h>

#include "server/http/proxies.h"
#include "tests/core/unit.h"
#include "tests/server/stderr.h"

static struct address parsed(const char *text)
{
    struct address a;
    ck_assert_msg(address_parse(text, strlen(text), &a), "%s", text);
    return a;
}

START_TEST(addresses_are_read_with_and_without_a_port)
{
    static const char *const cases[][2] = {
        { "192.0.2.1", "192.0.2.1" },           { "192.0.2.1:8080", "192.0.2.1" },
        { "2001:db8::1", "2001:db8::1" },       { "[2001:db8::1]", "2001:db8::1" },
        { "[2001:db8::1]:443", "2001:db8::1" }, { "::ffff:192.0.2.1", "192.0.2.1" },
    };
    char text[ADDRESS_TEXT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct address a = parsed(cases[i][0]);
        ck_assert_str_eq(address_text(&a, text), cases[i][1]);
    }
}
END_TEST

START_TEST(texts_that_are_no_address_are_rejected)
{
    static const char *const cases[] = { "",
                                         "unknown",
                                         "192.0.2",
                                         "192.0.2.1.5",
                                         "[",
                                         "[]",
                                         ":",
                                         "1.2.3.256",
                                         "2001:db8::1::2",
                                         "a text that is longer than any address could ever be written" };
    struct address a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(!address_parse(cases[i], strlen(cases[i]), &a), "%s", cases[i]);
}
END_TEST

START_TEST(a_address_is_in_the_addresses_that_begin_with_its_bits)
{
    static const struct {
        const char *network, *address;
        bool has;
    } cases[] = {
        { "10.0.0.0/8", "10.255.0.1", true },
        { "10.0.0.0/8", "11.0.0.1", false },
        { "10.1.2.128/25", "10.1.2.200", true },
        { "10.1.2.128/25", "10.1.2.127", false },
        { "10.1.2.3", "10.1.2.3", true },
        { "10.1.2.3", "10.1.2.4", false },
        { "0.0.0.0/0", "192.0.2.1", true },
        { "0.0.0.0/0", "2001:db8::1", false },
        { "2001:db8::/33", "2001:db8:7fff::", true },
        { "2001:db8::/33", "2001:db8:8000::", false },
        { "::/0", "192.0.2.1", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network n;
        struct address a = parsed(cases[i].address);
        ck_assert(address_parse_network(cases[i].network, strlen(cases[i].network), &n));
        ck_assert_msg(address_is_in(&n, &a) == cases[i].has, "%s %s", cases[i].network, cases[i].address);
    }
}
END_TEST

START_TEST(networks_that_are_not_valid_are_rejected)
{
    static const char *const cases[] = { "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                         "10.0.0.0/8x", "::/129",    "/8" };
    struct network n;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(!address_parse_network(cases[i], strlen(cases[i]), &n), "%s", cases[i]);
}
END_TEST

START_TEST(the_client_is_the_last_address_that_is_no_trusted_proxy)
{
    static const char *const cases[][2] = {
        { "192.0.2.1", "192.0.2.1" },
        { "198.51.100.7, 192.0.2.1", "192.0.2.1" },
        { "192.0.2.1, 10.0.0.2, 10.0.0.3", "192.0.2.1" },
        { " 192.0.2.1 ,, 10.0.0.2 ,", "192.0.2.1" },
        { "10.0.0.2", "10.0.0.2" },
        { "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2" },
        { "", "10.0.0.1" },
        { " , ", "10.0.0.1" },
    };
    char text[ADDRESS_TEXT_SIZE];
    ck_assert(proxies_read("10.0.0.0/8, ::1"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct address a = proxies_client(parsed("10.0.0.1"), cases[i][0]);
        ck_assert_str_eq(address_text(&a, text), cases[i][1]);
    }
    struct address alone = proxies_client(parsed("10.0.0.1"), NULL);
    ck_assert_str_eq(address_text(&alone, text), "10.0.0.1");
}
END_TEST

START_TEST(an_address_to_listen_on_has_a_host_and_a_port)
{
    static const char *const good[] = { "127.0.0.1:0", "[::1]:65535", "0.0.0.0:80" };
    static const char *const bad[] = { "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http",
                                       "127.0.0.1:65536" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct addrinfo *found = address_resolve(good[i]);
        ck_assert_msg(found, "%s", good[i]);
        freeaddrinfo(found);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stderr_begin();
        ck_assert_msg(!address_resolve(bad[i]), "%s", bad[i]);
        ck_assert_ptr_nonnull(strstr(stderr_end(), "must be ADDRESS:PORT"));
    }
}
END_TEST

UNIT_MAIN("address", addresses_are_read_with_and_without_a_port, texts_that_are_no_address_are_rejected,
          a_address_is_in_the_addresses_that_begin_with_its_bits, networks_that_are_not_valid_are_rejected,
          the_client_is_the_last_address_that_is_no_trusted_proxy,
          an_address_to_listen_on_has_a_host_and_a_port)

/* What a loop remembers of keys, and the limits of keys and addresses that all loops share. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/dispatch/failed_keys.h"
#include "server/dispatch/key_bucket.h"
#include "server/dispatch/key_misses.h"
#include "server/dispatch/key_set.h"
#include "tests/core/unit.h"

#define S INT64_C(1000000000)

enum { KEYS = 5000, THREADS = 4, TRIES = 2000 };

static struct key numbered(int n)
{
    struct key k = { .role = ROLE_AGENT, .expires_us = KEY_NEVER_US };
    struct sha256 s;
    sha256_start(&s);
    sha256_add(&s, &n, sizeof n);
    sha256_end(&s, k.hash);
    snprintf(k.owner, sizeof k.owner, "owner-%d", n);
    return k;
}

static struct address address(const char *text)
{
    struct address a;
    ck_assert(address_parse(text, strlen(text), &a));
    return a;
}

START_TEST(every_key_that_was_put_is_found_and_no_other)
{
    struct key_set s = { 0 };
    ck_assert_ptr_null(key_set_find(&s, numbered(0).hash));
    for (int i = 0; i < KEYS; i++) {
        const struct key k = numbered(i);
        key_set_put(&s, &k, 1);
        key_set_put(&s, &k, 1);
    }
    ck_assert_uint_eq(s.count, KEYS);
    for (int i = 0; i < KEYS; i++)
        ck_assert_str_eq(key_set_find(&s, numbered(i).hash)->key.owner, numbered(i).owner);
    for (int i = KEYS; i < 2 * KEYS; i++)
        ck_assert_ptr_null(key_set_find(&s, numbered(i).hash));
    key_set_free(&s);
}
END_TEST

START_TEST(a_key_that_a_whole_walk_did_not_see_counts_as_revoked_until_it_is_seen)
{
    struct key_set s = { 0 };
    const struct key gone = numbered(1), kept = numbered(2);
    key_set_put(&s, &gone, 1);
    key_set_put(&s, &kept, 1);
    key_set_walked(&s, 1);
    ck_assert(!key_set_find(&s, gone.hash)->key.revoked);
    key_set_put(&s, &kept, 2);
    key_set_walked(&s, 2);
    ck_assert(key_set_find(&s, gone.hash)->key.revoked);
    ck_assert(!key_set_find(&s, kept.hash)->key.revoked);
    key_set_put(&s, &gone, 3);
    ck_assert(!key_set_find(&s, gone.hash)->key.revoked);
    key_set_free(&s);
}
END_TEST

START_TEST(only_a_key_with_a_rate_has_a_bucket)
{
    struct key_set s = { 0 };
    struct key k = numbered(1);
    key_set_put(&s, &k, 1);
    ck_assert_ptr_null(key_set_find(&s, k.hash)->bucket);
    k.rate = k.burst = 2;
    key_set_put(&s, &k, 1);
    ck_assert_ptr_nonnull(key_set_find(&s, k.hash)->bucket);
    k.rate = k.burst = 0;
    key_set_put(&s, &k, 1);
    ck_assert_ptr_null(key_set_find(&s, k.hash)->bucket);
    k.rate = k.burst = 2;
    key_set_put(&s, &k, 1);
    key_set_free(&s);
}
END_TEST

START_TEST(a_miss_is_remembered_for_its_time_alone)
{
    static struct key_misses m;
    const struct key a = numbered(1), b = numbered(2);
    const int64_t now = 5000000;
    key_misses_add(&m, a.hash, now);
    ck_assert(key_misses_has(&m, a.hash, now));
    ck_assert(key_misses_has(&m, a.hash, now + KEY_MISSES_US - 1));
    ck_assert(!key_misses_has(&m, a.hash, now + KEY_MISSES_US));
    ck_assert(!key_misses_has(&m, b.hash, now));
}
END_TEST

START_TEST(misses_are_bounded_and_the_oldest_of_a_row_goes_first)
{
    static struct key_misses m;
    struct key same_row[KEY_MISSES_WAYS + 1];
    for (int i = 0; i <= KEY_MISSES_WAYS; i++) {
        same_row[i] = numbered(i);
        same_row[i].hash[0] = same_row[i].hash[1] = 7;
        key_misses_add(&m, same_row[i].hash, 1000 + i);
    }
    ck_assert(!key_misses_has(&m, same_row[0].hash, 2000));
    for (int i = 1; i <= KEY_MISSES_WAYS; i++)
        ck_assert(key_misses_has(&m, same_row[i].hash, 2000));
}
END_TEST

/* ---- the rate of a key ---- */

static atomic_int given;

static void *take_many(void *hash)
{
    struct key_bucket *b = key_bucket_open(hash);
    for (int i = 0; i < TRIES; i++)
        atomic_fetch_add(&given, key_bucket_take(b, 100, 300, 1000 * S + i * (S / TRIES)) == 0);
    key_bucket_close(b);
    return NULL;
}

START_TEST(the_rate_of_a_key_holds_over_all_loops_together)
{
    struct key k = numbered(1);
    struct key_bucket *held = key_bucket_open(k.hash); /* otherwise a thread that ends first starts anew */
    pthread_t threads[THREADS];
    atomic_store(&given, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_many, k.hash);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_ge(atomic_load(&given), 300);
    ck_assert_int_le(atomic_load(&given), 300 + 100);
    key_bucket_close(held);
}
END_TEST

START_TEST(keys_have_buckets_of_their_own)
{
    struct key one = numbered(1), two = numbered(2);
    struct key_bucket *a = key_bucket_open(one.hash), *b = key_bucket_open(two.hash);
    ck_assert_int_eq(key_bucket_take(a, 1, 1, 10 * S), 0);
    ck_assert_int_eq(key_bucket_take(a, 1, 1, 10 * S), S);
    ck_assert_int_eq(key_bucket_take(b, 1, 1, 10 * S), 0);
    key_bucket_close(a);
    key_bucket_close(b);
}
END_TEST

/* ---- failures of an address ---- */

START_TEST(an_address_has_its_failures_a_minute_and_others_have_theirs)
{
    const struct address a = address("192.0.2.1"), b = address("192.0.2.2");
    for (int i = 0; i < 60; i++)
        ck_assert_int_eq(failed_keys_take(&a, 60, 100 * S), 0);
    ck_assert_int_eq(failed_keys_take(&a, 60, 100 * S), S);
    ck_assert_int_eq(failed_keys_take(&b, 60, 100 * S), 0);
    ck_assert_int_eq(failed_keys_take(&a, 60, 101 * S), 0);
    ck_assert_int_eq(failed_keys_take(&a, 60, 101 * S), S);
    failed_keys_return(&a, 60, 101 * S);
    ck_assert_int_eq(failed_keys_take(&a, 60, 101 * S), 0);
}
END_TEST

START_TEST(the_addresses_of_an_ipv6_network_count_as_one)
{
    const struct address a = address("2001:db8:1:2::1"), b = address("2001:db8:1:2:ffff::9"),
                         c = address("2001:db8:1:3::1");
    ck_assert_int_eq(failed_keys_take(&a, 1, 100 * S), 0);
    ck_assert_int_gt(failed_keys_take(&b, 1, 100 * S), 0);
    ck_assert_int_eq(failed_keys_take(&c, 1, 100 * S), 0);
}
END_TEST

START_TEST(of_an_address_the_rejections_1_2_4_8_of_a_window_are_logged)
{
    const struct address a = address("192.0.2.3");
    int lines = 0;
    for (int i = 1; i <= 1000; i++) {
        const int64_t n = failed_keys_count(&a, 100 * S);
        lines += n > 0;
        ck_assert(n == 0 || n == i);
    }
    ck_assert_int_eq(lines, 10);
    ck_assert_int_eq(failed_keys_count(&a, 699 * S), 0);
    ck_assert_int_eq(failed_keys_count(&a, 701 * S), 1);
}
END_TEST

START_TEST(many_addresses_do_not_flood_the_log)
{
    int lines = 0;
    for (int i = 0; i < 50000; i++) {
        struct address a = { .bytes = { [10] = 0xff,
                                        [11] = 0xff,
                                        (unsigned char)(i >> 16),
                                        (unsigned char)(i >> 8),
                                        (unsigned char)i,
                                        1 } };
        lines += failed_keys_count(&a, 2000 * S) > 0;
    }
    ck_assert_int_ge(lines, 1);
    ck_assert_int_le(lines, 100);
}
END_TEST

UNIT_MAIN("key_limits", every_key_that_was_put_is_found_and_no_other,
          a_key_that_a_whole_walk_did_not_see_counts_as_revoked_until_it_is_seen,
          only_a_key_with_a_rate_has_a_bucket, a_miss_is_remembered_for_its_time_alone,
          misses_are_bounded_and_the_oldest_of_a_row_goes_first,
          the_rate_of_a_key_holds_over_all_loops_together, keys_have_buckets_of_their_own,
          an_address_has_its_failures_a_minute_and_others_have_theirs,
          the_addresses_of_an_ipv6_network_count_as_one,
          of_an_address_the_rejections_1_2_4_8_of_a_window_are_logged, many_addresses_do_not_flood_the_log)

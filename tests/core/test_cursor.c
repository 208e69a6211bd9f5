/* Opaque cursors. */
#include "core/base/cursor.h"
#include "core/base/hash.h"
#include "tests/core/unit.h"

static struct arena arena;
static const uint64_t scope = UINT64_C(0x0123456789abcdef);

static const char *encode(const char *first, const char *second)
{
    struct cursor_values values = { .count = second ? 2 : first ? 1 : 0, .value = { first, second } };
    struct buf out = { .arena = &arena };
    cursor_encode(&out, &values, scope);
    return buf_string(&out);
}

START_TEST(an_encoded_cursor_decodes_to_the_same_values)
{
    static const char *const texts[] = {
        "",     "a",    "ab", "abc", "2026-06-04T10:00:00.000000Z", "01890a5d-ac96-774b-bcce-b302099a8057",
        "0.10", "é€🚀",
    };
    size_t count = sizeof texts / sizeof *texts;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            struct cursor_values values = { 0 };
            ck_assert(cursor_decode(encode(texts[i], texts[k]), scope, &arena, &values));
            ck_assert_int_eq(values.count, 2);
            ck_assert_str_eq(values.value[0], texts[i]);
            ck_assert_str_eq(values.value[1], texts[k]);
            ck_assert(cursor_decode(encode(texts[i], NULL), scope, &arena, &values));
            ck_assert_int_eq(values.count, 1);
            ck_assert_str_eq(values.value[0], texts[i]);
        }
    struct cursor_values none = { .count = 2 };
    ck_assert(cursor_decode(encode(NULL, NULL), scope, &arena, &none));
    ck_assert_int_eq(none.count, 0);
    arena_release(&arena);
}
END_TEST

START_TEST(the_text_of_a_cursor_never_changes)
{
    ck_assert_str_eq(encode("2026-06-04T10:00:00.000000Z", "01890a5d-ac96-774b-bcce-b302099a8057"),
                     "AQEjRWeJq83vAjIwMjYtMDYtMDRUMTA6MDA6MDAuMDAwMDAwWgAwM"
                     "Tg5MGE1ZC1hYzk2LTc3NGItYmNjZS1iMzAyMDk5YTgwNTcAXyv-Iw");
    arena_release(&arena);
}
END_TEST

START_TEST(a_cursor_needs_no_escaping_in_a_query)
{
    char bytes[2] = { 0 };
    for (int c = 1; c < 128; c++) {
        bytes[0] = (char)c;
        const char *text = encode(bytes, "x");
        ck_assert_uint_eq(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                          strlen(text));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(any_changed_byte_is_refused)
{
    for (int length = 0; length < 3; length++) { /* each number of bits that base64 leaves over */
        const char *good = encode("2026-06-04T10:00:00.000000Z", &"xyz"[length]);
        size_t len = strlen(good);
        struct cursor_values values;
        for (size_t at = 0; at < len; at++)
            for (int c = 0; c < 256; c++) {
                char *changed = arena_copy(&arena, good, len);
                changed[at] = (char)c;
                HOLDS(cursor_decode(changed, scope, &arena, &values) == (good[at] == (char)c));
                if (c % 64 == 0)
                    arena_release(&arena), good = encode("2026-06-04T10:00:00.000000Z", &"xyz"[length]);
            }
        arena_release(&arena);
    }
}
END_TEST

START_TEST(a_truncated_or_extended_cursor_is_refused)
{
    const char *good = encode("2026-06-04T10:00:00.000000Z", "01890a5d-ac96-774b-bcce-b302099a8057");
    struct cursor_values values;
    for (size_t len = 0; len < strlen(good); len++) {
        ck_assert(!cursor_decode(arena_copy(&arena, good, len), scope, &arena, &values));
        ck_assert(!cursor_decode(good + len + 1, scope, &arena, &values));
    }
    static const char *const tails[] = { "A", "AA", "AAA", "AAAA", "=", "==", " ", "\n", "." };
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        ck_assert(!cursor_decode(arena_fmt(&arena, "%s%s", good, tails[i]), scope, &arena, &values));
        ck_assert(!cursor_decode(arena_fmt(&arena, "%s%s", tails[i], good), scope, &arena, &values));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_cursor_of_another_scope_is_refused)
{
    const char *good = encode("a", "b");
    struct cursor_values values = { .count = 7 };
    for (int bit = 0; bit < 64; bit++)
        ck_assert(!cursor_decode(good, scope ^ UINT64_C(1) << bit, &arena, &values));
    ck_assert_int_eq(values.count, 7);
    arena_release(&arena);
}
END_TEST

/* A cursor with a valid checksum over arbitrary content: what someone who read the source could send. */
static const char *forge(unsigned version, unsigned count, const char *values, size_t len)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct buf raw = { .arena = &arena }, out = { .arena = &arena };
    buf_char(&raw, (char)version);
    for (int i = 7; i >= 0; i--)
        buf_char(&raw, (char)(scope >> (8 * i)));
    buf_char(&raw, (char)count);
    buf_add(&raw, values, len);
    uint64_t h = hash_bytes(raw.data, raw.len, HASH_SEED);
    for (int i = 3; i >= 0; i--)
        buf_char(&raw, (char)((uint32_t)(h ^ h >> 32) >> (8 * i)));
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < raw.len; i++) {
        bits = (bits << 8 | (unsigned char)raw.data[i]) & 0xffff;
        for (held += 8; held >= 6; held -= 6)
            buf_char(&out, alphabet[bits >> (held - 6) & 63]);
    }
    if (held)
        buf_char(&out, alphabet[bits << (6 - held) & 63]);
    return buf_string(&out);
}

START_TEST(a_forged_cursor_is_refused_unless_encode_could_have_made_it)
{
    struct cursor_values values;
    ck_assert_str_eq(forge(1, 2, "a\0b", 4), encode("a", "b"));
    ck_assert(cursor_decode(forge(1, 2, "a\0b", 4), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(0, 2, "a\0b", 4), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(2, 2, "a\0b", 4), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 1, "a\0b", 4), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 3, "a\0b\0c", 6), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 255, "a\0b", 4), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 2, "a\0b", 3), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 2, "a", 2), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 2, "a\0b\0x", 5), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 2, "a\xff\0b", 5), scope, &arena, &values));
    ck_assert(!cursor_decode(forge(1, 1, "", 0), scope, &arena, &values));
    arena_release(&arena);
}
END_TEST

START_TEST(the_hash_is_fnv_1a)
{
    ck_assert(hash_bytes("", 0, HASH_SEED) == HASH_SEED);
    ck_assert(hash_bytes("a", 1, HASH_SEED) == UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert(hash_bytes("foobar", 6, HASH_SEED) == UINT64_C(0x85944171f73967e8));
    ck_assert(hash_bytes("bar", 3, hash_bytes("foo", 3, HASH_SEED)) == UINT64_C(0x85944171f73967e8));
}
END_TEST

UNIT_MAIN("cursor", an_encoded_cursor_decodes_to_the_same_values, the_text_of_a_cursor_never_changes,
          a_cursor_needs_no_escaping_in_a_query, any_changed_byte_is_refused,
          a_truncated_or_extended_cursor_is_refused, a_cursor_of_another_scope_is_refused,
          a_forged_cursor_is_refused_unless_encode_could_have_made_it, the_hash_is_fnv_1a)

/* SHA-256. */
#include "core/base/sha256.h"
#include "tests/core/unit.h"

static struct arena arena;

static const struct {
    const char *text, *digest;
} published[] = {
    /* FIPS 180-4 examples */
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqr"
      "st"
      "nopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

START_TEST(published_vectors_hold)
{
    char out[SHA256_HEX_SIZE];
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        sha256_hex(published[i].text, strlen(published[i].text), out);
        ck_assert_str_eq(out, published[i].digest);
    }
}
END_TEST

START_TEST(a_million_letters_give_the_published_digest)
{
    char *text = arena_alloc(&arena, 1000000), out[SHA256_HEX_SIZE];
    memset(text, 'a', 1000000);
    sha256_hex(text, 1000000, out);
    ck_assert_str_eq(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    arena_release(&arena);
}
END_TEST

static void fill(unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(7 * i + len);
}

START_TEST(every_length_around_the_block_size_is_right)
{
    char *text = unit_file(&arena, "sha256/lengths.txt"), out[SHA256_HEX_SIZE];
    unsigned char bytes[260];
    size_t len = 0;
    for (char *line; (line = unit_line(&text)); len++) {
        fill(bytes, len);
        sha256_hex(bytes, len, out);
        ck_assert_str_eq(out, line);
    }
    ck_assert_uint_eq(len, 260);
    arena_release(&arena);
}
END_TEST

START_TEST(pieces_give_the_digest_of_the_whole)
{
    unsigned char bytes[200], whole[SHA256_BYTES], pieces[SHA256_BYTES];
    fill(bytes, sizeof bytes);
    struct sha256 s;
    sha256_start(&s);
    sha256_add(&s, bytes, sizeof bytes);
    sha256_end(&s, whole);
    for (size_t first = 0; first <= sizeof bytes; first++)
        for (size_t second = first; second <= sizeof bytes; second += 13) {
            sha256_start(&s);
            sha256_add(&s, bytes, first);
            sha256_add(&s, bytes + first, second - first);
            sha256_add(&s, bytes + second, sizeof bytes - second);
            sha256_end(&s, pieces);
            ck_assert_mem_eq(whole, pieces, SHA256_BYTES);
        }
}
END_TEST

UNIT_MAIN("sha256", published_vectors_hold, a_million_letters_give_the_published_digest,
          every_length_around_the_block_size_is_right, pieces_give_the_digest_of_the_whole)

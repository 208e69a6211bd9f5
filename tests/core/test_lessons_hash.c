/* The hash of a lessons text. */
#include "core/base/sha256.h"
#include "core/base/utf8.h"
#include "core/reflect/lessons_hash.h"
#include "tests/core/unit.h"

static struct arena arena;

static uint32_t hex4(const char *digits)
{
    char four[5] = { digits[0], digits[1], digits[2], digits[3], '\0' };
    return (uint32_t)strtoul(four, NULL, 16);
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[len] | c);
    return len;
}

/* A JSON string in place: it never grows. */
static size_t unescape(char *text)
{
    ck_assert_int_eq(*text, '"');
    const char *from = text + 1;
    char *to = text;
    while (*from != '"') {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        char c = *++from;
        from++;
        if (c == 'u') {
            uint32_t code = hex4(from);
            from += 4;
            if (code >= 0xd800 && code < 0xdc00) {
                code = 0x10000 + ((code - 0xd800) << 10) + (hex4(from + 2) - 0xdc00);
                from += 6;
            }
            to += put_utf8(to, code);
        } else {
            const char *at = strchr("nntt  rrbbff", c);
            *to++ = !at ? c : c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : '\f';
        }
    }
    return (size_t)(to - text);
}

START_TEST(published_vectors_hold)
{
    char *text = unit_file(&arena, "lessons_hash.tsv"), out[LESSONS_HASH_SIZE];
    int cases = 0;
    for (char *line; (line = unit_line(&text)); cases++) {
        char *column[2];
        unit_columns(line, column, 2);
        char *shown = arena_text(&arena, column[1]);
        size_t len = unescape(column[1]);
        ck_assert_uint_eq(utf8_check(column[1], len), len);
        lessons_hash(column[1], len, out);
        ck_assert_msg(strcmp(out, column[0]) == 0, "%s has %s, not %s", shown, out, column[0]);
    }
    ck_assert_int_gt(cases, 30);
    arena_release(&arena);
}
END_TEST

START_TEST(white_space_alone_changes_nothing)
{
    static const char *const spaces[] = { " ",        "\t",           "\r\n",        "\xc2\x85",
                                          "\xc2\xa0", "\xe2\x80\x83", "\xe3\x80\x80" };
    uint64_t random = 7;
    for (int round = 0; round < 3000; round++) {
        char plain[400], spaced[400], a[LESSONS_HASH_SIZE], b[LESSONS_HASH_SIZE];
        size_t plain_len = 0, spaced_len = 0;
        for (int word = 0; word < 12; word++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            int blanks = (int)(random >> 62) + (word > 0);
            for (int i = 0; i < blanks; i++)
                spaced_len += (size_t)sprintf(spaced + spaced_len, "%s", spaces[(random >> (33 + i)) % 7]);
            plain_len +=
                (size_t)sprintf(plain + plain_len, "%s%x", word ? " " : "", (unsigned)(random >> 40 & 0xfff));
            spaced_len += (size_t)sprintf(spaced + spaced_len, "%x", (unsigned)(random >> 40 & 0xfff));
        }
        lessons_hash(plain, plain_len, a);
        lessons_hash(spaced, spaced_len, b);
        HOLDS(strcmp(a, b) == 0);
        char whole[SHA256_HEX_SIZE];
        sha256_hex(plain, plain_len, whole);
        HOLDS(strncmp(a, whole, 16) == 0);
    }
}
END_TEST

UNIT_MAIN("lessons_hash", published_vectors_hold, white_space_alone_changes_nothing)

/* UTF-8 text. */
#include "core/base/utf8.h"
#include "tests/core/unit.h"

/* Written from the definition, not from the code under test. */
static size_t encode(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((len == 2 ? 0xc0 : len == 3 ? 0xe0 : 0xf0) | c);
    return len;
}

START_TEST(every_character_decodes_to_itself_and_surrogates_are_invalid)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char text[4];
        size_t len = encode(c, text);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        HOLDS(utf8_check(text, len) == (surrogate ? 0 : len));
        if (surrogate)
            continue;
        const char *next = text;
        HOLDS(utf8_next(&next) == c);
        HOLDS(next == text + len);
        HOLDS(utf8_count(text, len) == 1);
        for (size_t cut = 1; cut < len; cut++)
            HOLDS(utf8_check(text, cut) == 0);
    }
}
END_TEST

static bool is_continuation(int c)
{
    return (c & 0xc0) == 0x80;
}

START_TEST(of_all_byte_pairs_only_valid_ones_are_accepted)
{
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            const char text[2] = { (char)a, (char)b };
            size_t good = 0;
            if (a < 0x80)
                good = b < 0x80 ? 2 : 1;
            else if (a >= 0xc2 && a <= 0xdf && is_continuation(b))
                good = 2;
            HOLDS(utf8_check(text, 2) == good);
        }
}
END_TEST

START_TEST(of_all_longer_sequences_only_the_shortest_form_is_accepted)
{
    for (int a = 0xe0; a < 0x100; a++)
        for (int b = 0; b < 256; b++)
            for (int c = 0; c < 256; c++) {
                static const int last[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };
                int d = last[(a + b + c) % 6];
                const char text[4] = { (char)a, (char)b, (char)c, (char)d };
                uint32_t three = (uint32_t)((a & 0x0f) << 12 | (b & 0x3f) << 6 | (c & 0x3f));
                uint32_t four =
                    (uint32_t)((a & 0x07) << 18 | (b & 0x3f) << 12 | (c & 0x3f) << 6 | (d & 0x3f));
                bool tail = is_continuation(b) && is_continuation(c);
                if (a < 0xf0) {
                    bool good = tail && three >= 0x800 && (three < 0xd800 || three > 0xdfff);
                    HOLDS(utf8_check(text, 3) == (good ? 3 : 0));
                } else {
                    bool good = tail && is_continuation(d) && a < 0xf8 && four >= 0x10000 && four <= 0x10ffff;
                    HOLDS(utf8_check(text, 4) == (good ? 4 : 0));
                }
            }
}
END_TEST

START_TEST(the_offset_of_the_first_bad_byte_is_found_wherever_it_is)
{
    for (size_t len = 1; len < 40; len++)
        for (size_t at = 0; at < len; at++) {
            char *text = malloc(len); /* the exact size, so that a read past the end is detected */
            memset(text, 'x', len);
            text[at] = (char)0xff;
            ck_assert_uint_eq(utf8_check(text, len), at);
            if (at + 1 < len) { /* here e with an acute accent is complete, at the end it is cut off */
                memcpy(text + at, "\xc3\xa9", 2);
                ck_assert_uint_eq(utf8_check(text, len), len);
                ck_assert_uint_eq(utf8_count(text, len), len - 1);
            } else {
                text[at] = (char)0xc3;
                ck_assert_uint_eq(utf8_check(text, len), at);
            }
            free(text);
        }
}
END_TEST

START_TEST(empty_text_is_valid)
{
    ck_assert_uint_eq(utf8_check("", 0), 0);
    ck_assert_uint_eq(utf8_count("", 0), 0);
    ck_assert_uint_eq(utf8_cut("", 0, 5), 0);
}
END_TEST

START_TEST(a_cut_never_splits_a_character)
{
    const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t expected[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11 };
    for (size_t max = 0; max < sizeof expected / sizeof *expected; max++)
        ck_assert_uint_eq(utf8_cut(text, sizeof text - 1, max), expected[max]);
}
END_TEST

START_TEST(white_space_is_what_unicode_says)
{
    static const uint32_t space[] = {
        0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x20,   0x85,   0xa0,   0x1680,
        0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
        0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
    };
    size_t found = 0;
    for (uint32_t c = 0; c <= 0x10ffff; c++)
        if (utf8_is_space(c))
            ck_assert_uint_eq(c, space[found++]);
    ck_assert_uint_eq(found, 25);
}
END_TEST

START_TEST(there_are_65_control_characters)
{
    size_t found = 0;
    for (uint32_t c = 0; c <= 0x10ffff; c++)
        found += utf8_is_control(c);
    ck_assert_uint_eq(found, 65);
    ck_assert(utf8_is_control(0) && utf8_is_control(0x1f) && utf8_is_control(0x7f) && utf8_is_control(0x9f));
    ck_assert(!utf8_is_control(' ') && !utf8_is_control('~') && !utf8_is_control(0xa0));
}
END_TEST

UNIT_MAIN("utf8", every_character_decodes_to_itself_and_surrogates_are_invalid,
          of_all_byte_pairs_only_valid_ones_are_accepted,
          of_all_longer_sequences_only_the_shortest_form_is_accepted,
          the_offset_of_the_first_bad_byte_is_found_wherever_it_is, empty_text_is_valid,
          a_cut_never_splits_a_character, white_space_is_what_unicode_says, there_are_65_control_characters)

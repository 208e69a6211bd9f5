/* UUIDs as text. */
#include "core/base/uuid.h"
#include "tests/core/unit.h"

static const char good[] = "01890a5d-ac96-774b-bcce-b302099a8057";

START_TEST(a_uuid_is_accepted_in_any_case_and_becomes_lower_case)
{
    char out[UUID_SIZE];
    ck_assert(uuid_parse(good, out));
    ck_assert_str_eq(out, good);
    ck_assert(uuid_parse("01890A5D-AC96-774B-BCCE-B302099A8057", out));
    ck_assert_str_eq(out, good);
    ck_assert(uuid_parse("00000000-0000-0000-0000-000000000000", out));
    ck_assert(uuid_parse("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", out));
    ck_assert_str_eq(out, "ffffffff-ffff-ffff-ffff-ffffffffffff");
}
END_TEST

START_TEST(no_other_byte_is_accepted_at_any_position)
{
    char out[UUID_SIZE], text[UUID_SIZE];
    for (size_t at = 0; at < UUID_SIZE - 1; at++)
        for (int c = 0; c < 256; c++) {
            memcpy(text, good, sizeof text);
            text[at] = (char)c;
            bool expected =
                good[at] == '-' ? c == '-' : c != 0 && strchr("0123456789abcdefABCDEF", c) != NULL;
            ck_assert_msg(uuid_parse(text, out) == expected, "%d at %zu", c, at);
        }
}
END_TEST

START_TEST(other_spellings_and_lengths_are_rejected)
{
    static const char *const bad[] = {
        "",
        "01890a5d",
        "01890a5dac96774bbcceb302099a8057",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a80570",
        "01890a5d-ac96-774b-bcce-b302099a805",
        " 01890a5d-ac96-774b-bcce-b302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a8057 ",
        "01890a5d-ac96-774b-bcceb-302099a8057",
        "0189-0a5d-ac96-774b-bcce-b302099a8057",
    };
    char out[UUID_SIZE];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!uuid_parse(bad[i], out), "taken: %s", bad[i]);
    for (size_t len = 0; len < UUID_SIZE - 1;
         len++) { /* on the heap, so that a read past the end is detected */
        char *text = strndup(good, len);
        ck_assert(!uuid_parse(text, out));
        free(text);
    }
}
END_TEST

START_TEST(version_7_is_laid_out_as_rfc_9562_shows)
{
    const unsigned char random[UUID_RANDOM_BYTES] = { 0xfc, 0xc3, 0xd8, 0xc4, 0xdc,
                                                      0x0c, 0x0c, 0x07, 0x39, 0x8f };
    char out[UUID_SIZE];
    uuid_v7(INT64_C(0x017F22E279B0), random, out);
    ck_assert_str_eq(out, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}
END_TEST

START_TEST(later_milliseconds_sort_later)
{
    unsigned char high[UUID_RANDOM_BYTES], low[UUID_RANDOM_BYTES] = { 0 };
    char before[UUID_SIZE], after[UUID_SIZE], parsed[UUID_SIZE];
    memset(high, 0xff, sizeof high);
    for (int64_t ms = 1; ms < INT64_C(1) << 47; ms = ms * 2 + 1) {
        uuid_v7(ms - 1, high, before);
        uuid_v7(ms, low, after);
        ck_assert_int_lt(strcmp(before, after), 0);
        ck_assert(uuid_parse(after, parsed));
    }
}
END_TEST

UNIT_MAIN("uuid", a_uuid_is_accepted_in_any_case_and_becomes_lower_case,
          no_other_byte_is_accepted_at_any_position, other_spellings_and_lengths_are_rejected,
          version_7_is_laid_out_as_rfc_9562_shows, later_milliseconds_sort_later)

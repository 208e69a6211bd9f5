/* Trades as JSON: written, read, and written again. */
#include "core/base/time_text.h"
#include "handlers/ledger/trade_rows.h"
#include "tests/core/unit.h"

static struct call call;
static struct trade *rows;
static size_t count;

static enum err reads(const char *json)
{
    char *exact = strdup(json); /* on the heap, so that a read past the end is detected */
    enum err e = trade_rows_read(&call.arena, exact, &rows, &count);
    free(exact);
    return e;
}

static const char *written(void)
{
    struct buf out = { .arena = &call.arena };
    trade_rows_json(&out, rows, count);
    return buf_string(&out);
}

#define REQUIRED                                                                                       \
    "\"symbol\":\"BTC\",\"side\":\"long\",\"entry_tick_at\":\"2026-06-04T10:00:00Z\",\"entry_price\":" \
    "65200.10,\"entry_size_usd\":250"

static const char two[] =
    "[{\"trade_id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"symbol\":\"BTC\",\"side\":\"long\","
    "\"entry_tick_at\":\"2026-06-04T10:00:00Z\",\"entry_price\":65200.12345678901234567890,"
    "\"entry_size_usd\":250.00,\"entry_leverage\":3,\"entry_reason\":\"a \\\"quote\\\",\\nand\\ta \\\\ é "
    "😀\","
    "\"entry_snapshot_id\":\"01890a5d-ac96-774b-bcce-b302099a8058\",\"entry_regime_tag\":\"chop_hivol\","
    "\"entry_lessons_hash\":\"0123456789abcdef\",\"size_base\":0.0038,\"average_entry_price\":65200,"
    "\"realized_so_far_usd\":-1.50,\"mark_price\":0.0000964,\"mfe_usd\":22.5,\"mae_usd\":-8,\"fees_usd\":"
    "0.25},"
    "{\"trade_id\":null,\"symbol\":\"ETH\",\"side\":\"short\",\"entry_tick_at\":\"2026-06-04T10:00:00."
    "250000Z\","
    "\"entry_price\":3410,\"entry_size_usd\":200,\"entry_leverage\":null,\"entry_reason\":null,"
    "\"entry_snapshot_id\":null,\"entry_regime_tag\":null,\"entry_lessons_hash\":null,\"size_base\":1,"
    "\"average_entry_price\":3410,\"realized_so_far_usd\":0,\"mark_price\":3438,\"mfe_usd\":0,\"mae_usd\":0,"
    "\"fees_usd\":0}]";

START_TEST(a_written_row_reads_back_byte_for_byte)
{
    ck_assert_int_eq(reads(two), OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(rows[0].entry_reason, "a \"quote\",\nand\ta \\ é 😀");
    ck_assert_ptr_null(rows[1].id);
    ck_assert_str_eq(written(), two);
    arena_release(&call.arena);
}
END_TEST

START_TEST(no_rows_are_an_empty_list)
{
    ck_assert_int_eq(trade_rows_read(&call.arena, NULL, &rows, &count), OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(reads(" [ ] \n"), OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_str_eq(written(), "[]");
    arena_release(&call.arena);
}
END_TEST

/* In the format of row_to_json: times with an offset, columns that a trade has no member for, line feeds
 * between the rows of a json_agg. */
START_TEST(a_closed_row_of_the_ledger_has_its_exit_and_the_pnl_of_the_whole_trade)
{
    const char *closed =
        "[{\"owner\":\"local\",\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"status\":"
        "\"closed\"," REQUIRED
        ",\"exit_tick_at\":\"2026-06-04T12:30:00.5+00:00\",\"exit_price\":65940.0,\"exit_reason\":\"target\","
        "\"exit_snapshot_id\":null,\"holding_minutes\":150.008333,\"realized_pnl_usd\":28.40,\"fees_usd\":"
        "0.10,\"mfe_usd\":null,\"mae_usd\":null,\"realized_so_far_usd\":5, \"flag\" : true}, \n {" REQUIRED
        ",\"realized_so_far_usd\":7.0,\"realized_pnl_usd\":null}]";
    int64_t exit_us;
    char text[DECIMAL_TEXT_SIZE];
    ck_assert_int_eq(reads(closed), OK);
    ck_assert_uint_eq(count, 2);
    ck_assert(time_text_parse("2026-06-04T12:30:00.5Z", &exit_us));
    ck_assert_str_eq(rows[0].id, "01890a5d-ac96-774b-bcce-b302099a8057");
    ck_assert_int_eq(rows[0].exit_tick_us, exit_us);
    ck_assert_str_eq(rows[0].exit_price.lexeme, "65940.0");
    ck_assert_str_eq(rows[0].exit_reason, "target");
    ck_assert_ptr_null(rows[0].exit_snapshot_id);
    ck_assert_str_eq(rows[0].realized_pnl_usd.lexeme, "28.40");
    decimal_text(rows[0].holding_minutes, text);
    ck_assert_str_eq(text, "150.008333");
    ck_assert_str_eq(rows[1].realized_pnl_usd.lexeme, "7.0");
    ck_assert(!rows[1].exit_price.given);
    ck_assert(trade_is_valid(&rows[0]));
    arena_release(&call.arena);
}
END_TEST

START_TEST(many_rows_and_long_numbers_are_read_in_full)
{
    struct buf list = { .arena = &call.arena };
    buf_char(&list, '[');
    for (int i = 0; i < 100; i++)
        buf_fmt(&list, "%s{" REQUIRED ",\"size_base\":%d.0%0300d}", i ? "," : "", i, i);
    buf_char(&list, ']');
    ck_assert_int_eq(reads(buf_string(&list)), OK);
    ck_assert_uint_eq(count, 100);
    for (int i = 0; i < 100; i++)
        ck_assert_str_eq(rows[i].size_base.lexeme, arena_fmt(&call.arena, "%d.0%0300d", i, i));
    arena_release(&call.arena);
}
END_TEST

static const struct {
    const char *escaped, *text;
} escapes[] = {
    { "\\u00e9\\u20AC", "é€" },
    { "\\ud83d\\ude00!", "😀!" },
    { "\\b\\f\\n\\r\\t\\/\\\\\\\"", "\b\f\n\r\t/\\\"" },
    { "\\u0001\\u007f", "\001\177" },
    { "", "" },
    { "\\u0000", NULL },
    { "\\ud83d", NULL },
    { "\\ud83d\\n", NULL },
    { "\\ude00\\ud83d", NULL },
    { "\\u12", NULL },
    { "\\u12g4", NULL },
    { "\\x", NULL },
};

START_TEST(every_escape_is_the_character_it_names)
{
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        const char *list =
            arena_fmt(&call.arena, "[{" REQUIRED ",\"entry_reason\":\"%s\"}]", escapes[i].escaped);
        ck_assert_int_eq(reads(list), escapes[i].text ? OK : ERR_INTERNAL);
        if (escapes[i].text)
            ck_assert_str_eq(rows[0].entry_reason, escapes[i].text);
    }
    arena_release(&call.arena);
}
END_TEST

static const char *const faults[] = {
    "",
    "null",
    "{}",
    "[",
    "[{}]",
    "[1]",
    "[[]]",
    "[{" REQUIRED "}",
    "[{" REQUIRED "},]",
    "[{" REQUIRED ",}]",
    "[{" REQUIRED "}] x",
    "[{" REQUIRED "} {" REQUIRED "}]",
    "[{" REQUIRED ",\"size_base\"}]",
    "[{" REQUIRED ",\"size_base\":}]",
    "[{" REQUIRED ",\"size_base\":1-2}]",
    "[{" REQUIRED ",\"size_base\":\"1\"}]",
    "[{" REQUIRED ",\"size_base\":[1]}]",
    "[{" REQUIRED ",\"size_base\":123456789012345678901}]",
    "[{" REQUIRED ",\"entry_reason\":5}]",
    "[{" REQUIRED ",\"entry_reason\":\"no end}]",
    "[{" REQUIRED ",\"entry_reason\":\"\\",
    "[{" REQUIRED ",\"exit_tick_at\":\"yesterday\"}]",
    "[{" REQUIRED ",\"side\":\"flat\"}]",
    "[{\"symbol\":\"BTC\",\"side\":\"long\",\"entry_price\":1,\"entry_size_usd\":1}]",
};

START_TEST(malformed_rows_are_rejected)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        ck_assert_msg(reads(faults[i]) == ERR_INTERNAL, "was read: %s", faults[i]);
    for (size_t len = 0; len < strlen(two); len++) /* cut off anywhere */
        ck_assert_int_eq(reads(arena_copy(&call.arena, two, len)), ERR_INTERNAL);
    arena_release(&call.arena);
}
END_TEST

UNIT_MAIN("trade_row", a_written_row_reads_back_byte_for_byte, no_rows_are_an_empty_list,
          a_closed_row_of_the_ledger_has_its_exit_and_the_pnl_of_the_whole_trade,
          many_rows_and_long_numbers_are_read_in_full, every_escape_is_the_character_it_names,
          malformed_rows_are_rejected)

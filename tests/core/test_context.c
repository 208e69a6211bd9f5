/* The context of a decision: its sections, its budget, its JSON. */
#include "core/base/line_text.h"
#include "core/base/money.h"
#include "core/base/tokens.h"
#include "core/ledger/context.h"
#include "tests/core/unit.h"

static struct arena arena;

static struct trade entered(const char *symbol, enum trade_side side, const char *when, const char *usd,
                            const char *price, const char *reason)
{
    return (struct trade){ .symbol = symbol,
                           .side = side,
                           .entry_tick_us = unit_time_us(when),
                           .entry_size_usd = unit_number(usd),
                           .entry_price = unit_number(price),
                           .average_entry_price = unit_number(price),
                           .size_base = unit_number("0"),
                           .mark_price = unit_number(price),
                           .entry_reason = reason };
}

static struct trade closed(struct trade t, const char *when, const char *price, const char *pnl,
                           const char *regime)
{
    t.exit_tick_us = unit_time_us(when);
    t.exit_price = unit_number(price);
    t.realized_pnl_usd = unit_number(pnl);
    t.holding_minutes = trade_minutes(t.entry_tick_us, t.exit_tick_us);
    t.entry_regime_tag = regime;
    t.exit_reason = "target reached";
    return t;
}

static const char *text_of(const struct context *c, size_t max_tokens, struct context_shown *shown)
{
    struct buf out = { .arena = &arena };
    *shown = context_text(&out, c, max_tokens);
    return buf_string(&out);
}

/* ---- the golden context ---- */

static const struct rule_count rejections[] = { { "R6_RATE_LIMIT", 1 }, { "R3_POSITION_CAP", 4 } };
static const char *const tail[] = { "R3_POSITION_CAP", "R3_POSITION_CAP", "R3_POSITION_CAP",
                                    "R3_POSITION_CAP" };
static struct trade closed_trades[4], open_trades[2];

static struct context full(void)
{
    closed_trades[0] = closed(entered("BTC", TRADE_LONG, "2026-06-04T10:00:00Z", "2500", "65200",
                                      "breakout above prior swing high"),
                              "2026-06-04T12:30:00Z", "65940", "28.40", "trend_up_lowvol");
    closed_trades[1] = closed(
        entered("ETH", TRADE_SHORT, "2026-06-04T08:15:00Z", "1800", "3420", "funding extreme, mean-revert"),
        "2026-06-04T09:00:00Z", "3455", "-9.70", NULL);
    closed_trades[2] =
        closed(entered("PEPE", TRADE_LONG, "2026-06-03T23:59:59Z", "1234567.891", "0.0000964", NULL),
               "2026-06-04T00:00:29Z", "0.00009641", "0", "unknown");
    closed_trades[3] = closed(entered("SOL", TRADE_SHORT, "2026-05-30T10:00:00Z", "1000", "150.25",
                                      "a \"quoted\"\nreason\t of two lines"),
                              "2026-06-02T10:30:00Z", "149.75", "1250.005", "chop_hivol");
    open_trades[0] =
        entered("ETH", TRADE_LONG, "2026-06-04T12:30:00Z", "200", "3410", "BB lower-band bounce");
    open_trades[0].size_base = unit_number("0.0587");
    open_trades[0].mark_price = unit_number("3438");
    open_trades[0].mfe_usd = unit_number("22").value;
    open_trades[0].mae_usd = unit_number("-8").value;
    open_trades[1] = entered("SOL", TRADE_SHORT, "2026-06-04T13:00:00Z", "99.5", "148.5", NULL);
    open_trades[1].size_base = unit_number("0.67");
    return (struct context){
        .now_us = unit_time_us("2026-06-04T13:00:00Z"),
        .risk = { .rejections = rejections,
                  .rule_count = 2,
                  .tail = tail,
                  .tail_count = 4,
                  .executed_today = 2,
                  .has_pnl_today = true,
                  .pnl_today_pct = unit_number("-1.2345").value,
                  .losing_closes = 3 },
        .closed = closed_trades,
        .closed_count = 4,
        .open = open_trades,
        .open_count = 2,
    };
}

static const char *json_of(const struct context *c, const struct context_shown *shown)
{
    struct buf json = { .arena = &arena };
    buf_char(&json, '{');
    context_members(&json, c, shown);
    buf_text(&json, "}\n");
    return buf_string(&json);
}

START_TEST(the_sections_are_as_in_the_golden_file)
{
    struct context c = full();
    struct context_shown shown;
    const char *text = text_of(&c, 100000, &shown);
    ck_assert_str_eq(text, unit_file(&arena, "context/full.md"));
    ck_assert_uint_eq(shown.tokens, tokens_estimate(text, strlen(text)));
    ck_assert(shown.risk && shown.closed == 4 && shown.open == 2 && !shown.closed_omitted &&
              !shown.open_omitted);
    ck_assert_str_eq(json_of(&c, &shown), unit_file(&arena, "context/full.json"));
    arena_release(&arena);
}
END_TEST

START_TEST(without_data_the_context_is_empty)
{
    struct context c = { .now_us = 0 };
    struct context_shown shown;
    ck_assert_str_eq(text_of(&c, 1000, &shown), "");
    ck_assert_uint_eq(shown.tokens, 0);
    ck_assert_str_eq(
        json_of(&c, &shown),
        "{\"recent_activity\":{\"rejections_last_hour\":[],\"recent_rejections\":[],"
        "\"repeated_rejection\":null,\"executed_orders_today\":0,\"realized_pnl_today_pct\":null,"
        "\"consecutive_losing_closes\":0},\"recent_trades\":[],\"open_positions\":[],"
        "\"recent_trades_omitted\":0,\"open_positions_omitted\":0,\"recent_activity_omitted\":false}\n");
    arena_release(&arena);
}
END_TEST

START_TEST(every_budget_is_met_and_the_oldest_trades_are_dropped_first)
{
    struct context c = full();
    struct context_shown shown, before = { .risk = false };
    text_of(&c, 100000, &shown);
    size_t all = shown.tokens;
    for (size_t max = 0; max <= all; max++) {
        const char *text = text_of(&c, max, &shown);
        ck_assert_uint_le(shown.tokens, max);
        ck_assert_uint_eq(shown.tokens, tokens_estimate(text, strlen(text)));
        ck_assert_uint_eq(shown.closed + shown.closed_omitted, 4);
        ck_assert_uint_eq(shown.open + shown.open_omitted, 2);
        ck_assert(*text == '\0' || *text == '#');
        ck_assert_ptr_null(strstr(text, "\n\n\n"));
        ck_assert_int_eq(shown.closed > 0, strstr(text, "## Recent trades") != NULL);
        ck_assert_int_eq(shown.open > 0, strstr(text, "## Open positions") != NULL);
        ck_assert_int_eq(shown.closed > 0,
                         strstr(text, "breakout above") != NULL); /* the newest is dropped last */
        if (shown.risk && before.risk)
            ck_assert(shown.open >= before.open &&
                      (shown.open > before.open || shown.closed >= before.closed));
        before = shown;
        arena_release(&arena);
    }
    ck_assert(shown.closed == 4 && shown.open == 2 && shown.risk);
}
END_TEST

/* ---- lessons ---- */

#define LESSONS "## Lessons (signal, not strategy)\n### Sizing\n- Small sizes won: +$3.10 a trade (n=41).\n"

static struct context with_lessons(void)
{
    struct context c = full();
    c.lessons = (struct context_lessons){ .text = LESSONS,
                                          .note_id = "0190aaaa-0000-7000-8000-000000000001",
                                          .scope = "skill",
                                          .hash = "0123456789abcdef" };
    return c;
}

START_TEST(lessons_are_the_first_section_and_nothing_else_changes)
{
    struct context c = with_lessons();
    struct context_shown shown;
    const char *text = text_of(&c, 100000, &shown);
    ck_assert_str_eq(text, arena_fmt(&arena, LESSONS "\n%s", unit_file(&arena, "context/full.md")));
    ck_assert_uint_eq(shown.tokens, tokens_estimate(text, strlen(text)));
    ck_assert(shown.lessons && shown.risk && shown.closed == 4 && shown.open == 2);
    struct buf json = { .arena = &arena };
    context_lessons_json(&json, &c, &shown);
    ck_assert_str_eq(buf_string(&json),
                     arena_fmt(&arena,
                               "{\"note_id\":\"0190aaaa-0000-7000-8000-000000000001\",\"scope\":\"skill\","
                               "\"lessons_hash\":\"0123456789abcdef\",\"tokens\":%zu,\"shown\":true}",
                               tokens_estimate(LESSONS, strlen(LESSONS))));
    ck_assert_str_eq(json_of(&c, &shown), unit_file(&arena, "context/full.json"));
    arena_release(&arena);
}
END_TEST

START_TEST(lessons_that_end_without_a_newline_are_a_section_too)
{
    struct context c = with_lessons();
    c.lessons.text = "- one";
    struct context_shown shown;
    const char *text = text_of(&c, 100000, &shown);
    ck_assert_msg(strncmp(text, "- one\n\n## Recent activity", 25) == 0, "%s", text);
    ck_assert_uint_eq(shown.tokens, tokens_estimate(text, strlen(text)));
    c = (struct context){ .lessons = c.lessons };
    ck_assert_str_eq(text_of(&c, 100000, &shown), "- one\n");
    c.lessons.text = NULL;
    ck_assert_str_eq(text_of(&c, 100000, &shown), "");
    struct buf json = { .arena = &arena };
    context_lessons_json(&json, &c, &shown);
    ck_assert_str_eq(buf_string(&json), "null");
    arena_release(&arena);
}
END_TEST

/* Positions and trades are dropped before the lessons, the activity after them. */
START_TEST(lessons_are_never_truncated_and_every_budget_is_met)
{
    struct context c = with_lessons();
    struct context_shown shown;
    text_of(&c, 100000, &shown);
    size_t all = shown.tokens, with = 0, without = 0;
    for (size_t max = 0; max <= all; max++) {
        const char *text = text_of(&c, max, &shown);
        ck_assert_uint_le(shown.tokens, max);
        ck_assert_uint_eq(shown.tokens, tokens_estimate(text, strlen(text)));
        ck_assert_int_eq(shown.lessons, strncmp(text, LESSONS, strlen(LESSONS)) == 0);
        ck_assert_int_eq(shown.lessons, strstr(text, "signal") != NULL);
        ck_assert_uint_eq(shown.lessons_tokens, tokens_estimate(LESSONS, strlen(LESSONS)));
        ck_assert_ptr_null(strstr(text, "\n\n\n"));
        if (shown.risk && shown.lessons)
            with++;
        else if (shown.risk) {
            without++;
            ck_assert_uint_eq(with, 0);
        }
        arena_release(&arena);
    }
    ck_assert_uint_gt(with, 0);
    ck_assert_uint_gt(without, 0);
    ck_assert(shown.closed == 4 && shown.open == 2 && shown.risk && shown.lessons);
}
END_TEST

START_TEST(no_more_than_thirty_trades_are_shown)
{
    struct trade many[40];
    for (int i = 0; i < 40; i++)
        many[i] = closed(entered("BTC", TRADE_LONG, "2026-06-04T10:00:00Z", "250", "65200", "r"),
                         "2026-06-04T12:30:00Z", "65940", "2.84", NULL);
    struct context c = { .closed = many, .closed_count = 40 };
    struct context_shown shown;
    text_of(&c, 100000, &shown);
    ck_assert_uint_eq(shown.closed, 30);
    ck_assert_uint_eq(shown.closed_omitted, 10);
    arena_release(&arena);
}
END_TEST

/* The longest value of every field: the budget is met whatever callers send. */
START_TEST(a_line_is_bounded_whatever_it_contains)
{
    char *huge = arena_alloc(&arena, 100001);
    memset(huge, 'W', 100000);
    huge[100000] = '\0';
    struct trade t = closed(
        entered(huge, TRADE_LONG, "2026-06-04T10:00:00Z", "99999999999999999999.999999999999999999",
                "99999999999999999999.999999999999999999", huge),
        "9999-06-04T12:30:00Z", "99999999999999999999.999999999999999999", "-99999999999999999999", huge);
    struct context c = { .closed = &t, .closed_count = 1 };
    struct context_shown shown;
    text_of(&c, 100000, &shown);
    ck_assert_uint_eq(shown.closed, 1);
    ck_assert_uint_lt(shown.tokens, 300);
    arena_release(&arena);
}
END_TEST

/* ---- recent activity ---- */

static const char *activity(struct risk_state r)
{
    struct buf out = { .arena = &arena };
    risk_state_text(&out, &r);
    return buf_string(&out);
}

#define HEADING "## Recent activity (this session)\n"
#define NUDGE   " ← same code in the last 3+ rejections; do not repeat the same proposal shape\n"

START_TEST(a_zero_line_is_omitted)
{
    ck_assert_str_eq(activity((struct risk_state){ .executed_today = 1 }),
                     HEADING "- executed orders today (UTC): 1\n");
    ck_assert_str_eq(activity((struct risk_state){ .losing_closes = 2 }),
                     HEADING "- consecutive losing closes: 2\n");
    ck_assert_str_eq(activity((struct risk_state){ .has_pnl_today = true }), "");
    ck_assert_str_eq(
        activity((struct risk_state){ .has_pnl_today = true, .pnl_today_pct = unit_number("0.004").value }),
        "");
    ck_assert_str_eq(
        activity((struct risk_state){ .has_pnl_today = true, .pnl_today_pct = unit_number("0.516").value }),
        HEADING "- realized PnL today (UTC, vs day-start equity): +0.52%\n");
    ck_assert_str_eq(activity((struct risk_state){ .pnl_today_pct = unit_number("5").value }), "");
    ck_assert_str_eq(activity((struct risk_state){ .rejections = rejections, .rule_count = 1 }),
                     HEADING "- engine rejections (last 1h): R6_RATE_LIMIT=1\n");
    arena_release(&arena);
}
END_TEST

static const char *sequence(const char *const *codes, size_t count)
{
    return activity((struct risk_state){ .tail = codes, .tail_count = count });
}

START_TEST(three_consecutive_rejections_are_reported_and_two_are_not)
{
    const char *const codes[] = { "A", "B", "B", "B", "C", "C", "C" };
    ck_assert_str_eq(sequence(codes, 1), HEADING "- recent rejection sequence: A\n");
    ck_assert_str_eq(sequence(codes, 3), HEADING "- recent rejection sequence: A → B → B\n");
    ck_assert_str_eq(sequence(codes, 4), HEADING "- recent rejection sequence: A → B → B → B" NUDGE);
    ck_assert_str_eq(sequence(codes, 5), HEADING "- recent rejection sequence: A → B → B → B → C\n");
    ck_assert_str_eq(sequence(codes, 6), HEADING "- recent rejection sequence: B → B → B → C → C\n");
    ck_assert_str_eq(sequence(codes, 7), HEADING "- recent rejection sequence: B → B → C → C → C" NUDGE);
    arena_release(&arena);
}
END_TEST

START_TEST(rules_are_sorted_by_count_and_name_and_their_number_is_bounded)
{
    const struct rule_count many[] = { { "E", 1 }, { "A", 2 }, { "B", 2 }, { "D", 9 },
                                       { "G", 1 }, { "F", 1 }, { "H", 1 }, { "C", 3 } };
    ck_assert_str_eq(activity((struct risk_state){ .rejections = many, .rule_count = 8 }),
                     HEADING "- engine rejections (last 1h): D=9, C=3, A=2, B=2, E=1, F=1, 2 more rules\n");
    arena_release(&arena);
}
END_TEST

/* ---- numbers and untrusted text ---- */

static const struct {
    const char *amount, *price, *usd, *change, *pnl, *percent;
} amounts[] = {
    { "0", "0", "$0", "$0", "$0.00", "0.0%" },
    { "250", "250", "$250", "+$250", "+$250.00", "+250.0%" },
    { "65200", "65,200", "$65,200", "+$65,200", "+$65,200.00", "+65200.0%" },
    { "-8", "-8", "-$8", "-$8", "-$8.00", "-8.0%" },
    { "-9.7", "-9.7", "-$9.70", "-$9.70", "-$9.70", "-9.7%" },
    { "999.995", "999.995", "$1,000", "+$1,000", "+$1,000.00", "+1000.0%" },
    { "1234567.891", "1,234,567.891", "$1,234,567.89", "+$1,234,567.89", "+$1,234,567.89", "+1234567.9%" },
    { "-123456", "-123,456", "-$123,456", "-$123,456", "-$123,456.00", "-123456.0%" },
    { "0.0000964", "0.0000964", "$0", "$0", "$0.00", "0.0%" },
    { "-0.004", "-0.004", "$0", "$0", "$0.00", "0.0%" },
    { "65200.12345678", "65,200.12345678", "$65,200.12", "+$65,200.12", "+$65,200.12", "+65200.1%" },
    { "0.05", "0.05", "$0.05", "+$0.05", "+$0.05", "0.0%" },
};

static const char *shown_as(void (*put)(struct buf *, struct decimal), const char *amount)
{
    struct buf out = { .arena = &arena };
    put(&out, unit_number(amount).value);
    return buf_string(&out);
}

START_TEST(amounts_are_written_as_the_table_says)
{
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        ck_assert_str_eq(shown_as(money_price, amounts[i].amount), amounts[i].price);
        ck_assert_str_eq(shown_as(money_usd, amounts[i].amount), amounts[i].usd);
        ck_assert_str_eq(shown_as(money_change, amounts[i].amount), amounts[i].change);
        ck_assert_str_eq(shown_as(money_pnl, amounts[i].amount), amounts[i].pnl);
        struct buf out = { .arena = &arena };
        money_percent(&out, unit_number(amounts[i].amount).value, 1);
        ck_assert_str_eq(buf_string(&out), amounts[i].percent);
    }
    ck_assert(!decimal_is_valid(money_share(unit_number("5").value, unit_number("0").value)));
    ck_assert(!decimal_is_valid(money_share(unit_number("5").value, unit_number("-1").value)));
    arena_release(&arena);
}
END_TEST

static const struct {
    const char *text;
    size_t max;
    const char *line;
} lines[] = {
    { "", 5, "" },
    { "  \n ", 5, "" },
    { "short", 5, "short" },
    { "longer", 5, "long…" },
    { "  two \r\n\t words ", 20, "two words" },
    { "a\x01\x7f"
      "b",
      5, "a b" },
    { "\"q\"", 5, "'q'" },
    { "one two", 5, "one…" },
    { "abcd ef", 5, "abcd…" },
    { "abcde  ", 5, "abcde" },
    { "ééééé", 5, "ééééé" },
    { "éééééé", 5, "éééé…" },
    { "a\xe3\x80\x80"
      "b\xc2\x85"
      "c",
      5, "a b c" },
};

START_TEST(untrusted_text_stays_in_its_line_and_quotes)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf out = { .arena = &arena };
        buf_text(&out, "> ");
        line_text(&out, lines[i].text, lines[i].max);
        ck_assert_str_eq(buf_string(&out) + 2, lines[i].line);
    }
    arena_release(&arena);
}
END_TEST

/* A simple model for ASCII, character by character: collapse the words, then truncate. */
static const char *plain_line(const char *text, size_t max)
{
    struct buf out = { .arena = &arena };
    for (; *text; text++) {
        const bool blank = *text <= ' ' || *text == 0x7f;
        if (!blank)
            buf_char(&out, *text == '"' ? '\'' : *text);
        else if (out.len > 0 && out.data[out.len - 1] != ' ')
            buf_char(&out, ' ');
    }
    while (out.len > 0 && out.data[out.len - 1] == ' ')
        out.len--;
    if (out.len <= max)
        return buf_string(&out);
    out.len = max - 1;
    while (out.len > 0 && out.data[out.len - 1] == ' ')
        out.len--;
    buf_text(&out, "…");
    return buf_string(&out);
}

START_TEST(any_line_matches_the_model)
{
    static const char pieces[] = "abcdef  \"~!\n\x7f";
    uint64_t random = 7;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t len = 0;
        for (random = random * UINT64_C(6364136223846793005) + 1; len < (random >> 40) % sizeof text; len++)
            text[len] = pieces[(random >> (len + 7)) % (sizeof pieces - 1)];
        text[len] = '\0';
        const size_t max = 1 + (random >> 50) % 20;
        struct buf out = { .arena = &arena };
        line_text(&out, text, max);
        HOLDS(strcmp(buf_string(&out), plain_line(text, max)) == 0);
        arena_release(&arena);
    }
}
END_TEST

UNIT_MAIN("context", the_sections_are_as_in_the_golden_file, without_data_the_context_is_empty,
          every_budget_is_met_and_the_oldest_trades_are_dropped_first,
          lessons_are_the_first_section_and_nothing_else_changes,
          lessons_that_end_without_a_newline_are_a_section_too,
          lessons_are_never_truncated_and_every_budget_is_met, no_more_than_thirty_trades_are_shown,
          a_line_is_bounded_whatever_it_contains, a_zero_line_is_omitted,
          three_consecutive_rejections_are_reported_and_two_are_not,
          rules_are_sorted_by_count_and_name_and_their_number_is_bounded,
          amounts_are_written_as_the_table_says, untrusted_text_stays_in_its_line_and_quotes,
          any_line_matches_the_model)

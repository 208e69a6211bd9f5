/* The story of a trade: the order of its entries, and the answers drawn from them. */
#include "core/journal/story.h"
#include "tests/core/golden.h"

static struct arena arena;

#define ID(n) "0197c3a2-0000-7000-8000-00000000000" #n

static struct story_entry entry(const char *kind, const char *when, int64_t n, const char *id,
                                const char *text)
{
    const struct story_kind *k = story_kind_find(kind);
    ck_assert_msg(k != NULL, "%s", kind);
    return (struct story_entry){ .kind = k, .at_us = unit_time_us(when), .n = n, .id = id, .text = text };
}

static struct story_trade trade(void)
{
    return (struct story_trade){ .id = ID(0),
                                 .deployment_id = ID(a),
                                 .skill_id = "breakout",
                                 .version = "v3",
                                 .symbol = "BTC",
                                 .side = "long",
                                 .entry_us = unit_time_us("2026-06-04T10:00:00Z"),
                                 .exit_us = unit_time_us("2026-06-04T12:00:00Z"),
                                 .exited = true,
                                 .entry_reason = "breakout above prior swing high",
                                 .net_pnl_usd = "28.14",
                                 .fees_usd = "1.20",
                                 .exit_reason = "target" };
}

static void describe(struct story_entry *e, const struct story_detail *details, size_t count)
{
    e->details = details;
    e->detail_count = count;
}

#define DESCRIBE(entry, ...)                                           \
    do {                                                               \
        static const struct story_detail details_[] = { __VA_ARGS__ }; \
        describe(entry, details_, sizeof details_ / sizeof *details_); \
    } while (0)

static const char *const evidence[] = { "volume 3x", "range of 12 days" };
static struct story_entry entries[16];

/* Entries in no order, with what happens at the instants of the entry and of the exit. */
static struct story whole(void)
{
    size_t n = 0;
    entries[n++] = entry("exit", "2026-06-04T12:00:00Z", 0, ID(8), "target");
    entries[n++] = entry("reflection_note", "2026-06-05T00:00:00Z", 0, ID(9), "### Sizing\n- small won");
    entries[n++] = entry("thesis.closed", "2026-06-04T12:00:00Z", 9, ID(2), "target reached");
    entries[n++] = entry("entry", "2026-06-04T10:00:00Z", 0, ID(7), "breakout above prior swing high");
    entries[n++] = entry("order", "2026-06-04T10:00:00Z", 4, ID(4), "buy the break");
    DESCRIBE(&entries[n - 1], { "action", "buy" }, { "side", "long" }, { "size", "0.50" });
    entries[n++] = entry("decision", "2026-06-04T10:00:00Z", 3, ID(3), "Buy, the \"range\" broke");
    entries[n - 1].ref = ID(2);
    entries[n - 1].evidence = evidence;
    entries[n - 1].evidence_count = 2;
    entries[n++] = entry("thesis.opened", "2026-06-04T09:59:00Z", 2, ID(2), "Breakout holds");
    entries[n - 1].evidence = evidence;
    entries[n - 1].evidence_count = 1;
    entries[n - 1].data = "{\"side\":\"long\"}";
    entries[n++] = entry("retrieval", "2026-06-04T09:59:00Z", 1, ID(1), "BTC thesis");
    entries[n++] = entry("order.outcome", "2026-06-04T10:00:00Z", 4, ID(4), "filled");
    DESCRIBE(&entries[n - 1], { "outcome", "filled" }, { "filled_size", "0.50" },
             { "average_price", "65198.5" }, { "fees_usd", "1.20" }, { "reason", "in two parts" });
    entries[n++] = entry("context", "2026-06-04T10:00:00Z", 0, ID(7), NULL);
    entries[n++] = entry("observation", "2026-06-04T11:00:00Z", 5, ID(5), NULL);
    DESCRIBE(&entries[n - 1], { "side", "long" }, { "quantity", "0.50" }, { "mark_price", "65300" },
             { "market_value_usd", "32650.00" }, { "unrealized_pnl_usd", "50.75" });
    entries[n++] = entry("warning", "2026-06-04T11:30:00Z", 6, ID(6), NULL);
    entries[n - 1].ref = ID(2);
    DESCRIBE(&entries[n - 1], { "action", "add" }, { "order_id", ID(c) });
    entries[n++] = entry("lesson", "2026-06-04T12:00:00Z", 0, ID(b), "Wait for </the> retest");
    static const struct story_omitted omitted[] = { { "retrievals", 3 }, { "orders", 0 } };
    struct story s = {
        .trade = trade(), .entries = entries, .count = n, .omitted = omitted, .omitted_count = 2
    };
    story_sort(&s);
    return s;
}

static void check(const char *name, const struct story *s)
{
    const struct story_summary sum = story_summarize(s);
    struct buf json = { .arena = &arena }, text = json;
    buf_char(&json, '{');
    story_members(&json, s, &sum);
    buf_text(&json, "}\n");
    story_markdown(&text, s, &sum);
    golden_check(&arena, arena_fmt(&arena, "journal/%s.json", name), buf_string(&json));
    golden_check(&arena, arena_fmt(&arena, "journal/%s.md", name), buf_string(&text));
}

START_TEST(a_whole_story_is_as_in_the_golden_files)
{
    struct story s = whole();
    check("story", &s);
    arena_release(&arena);
}
END_TEST

START_TEST(a_story_without_a_journal_says_what_is_not_known)
{
    struct story s = { .trade = trade(), .entries = entries };
    s.trade.exited = false;
    s.trade.exit_reason = s.trade.net_pnl_usd = NULL;
    entries[0] = entry("entry", "2026-06-04T10:00:00Z", 0, NULL, NULL);
    s.count = 1;
    check("story_bare", &s);
    s.trade.entry_reason = NULL;
    ck_assert_ptr_null(story_summarize(&s).why.source);
    arena_release(&arena);
}
END_TEST

static struct story_summary summary_of(struct story_entry *list, size_t count)
{
    struct story s = { .trade = trade(), .entries = list, .count = count };
    story_sort(&s);
    return story_summarize(&s);
}

START_TEST(a_search_counts_only_before_the_order_that_led_to_the_entry)
{
    struct story_entry list[] = {
        entry("order", "2026-06-04T09:50:00Z", 5, ID(1), NULL),
        entry("retrieval", "2026-06-04T09:50:00Z", 6, ID(2), "late"),
        entry("entry", "2026-06-04T10:00:00Z", 0, ID(3), NULL),
    };
    ck_assert_int_eq(summary_of(list, 3).searched_first, STORY_NO);
    list[1].n = 4;
    ck_assert_int_eq(summary_of(list, 3).searched_first, STORY_YES);
    struct story_entry held[] = {
        entry("entry", "2026-06-04T10:00:00Z", 0, ID(3), NULL),
        entry("retrieval", "2026-06-04T11:00:00Z", 6, ID(2), "while held"),
    };
    ck_assert_int_eq(summary_of(held, 2).searched_first, STORY_UNKNOWN);
    struct story_entry searched[] = {
        entry("retrieval", "2026-06-04T10:00:00Z", 6, ID(2), "in the instant of the tick"),
        entry("entry", "2026-06-04T10:00:00Z", 0, ID(3), NULL),
    };
    ck_assert_int_eq(summary_of(searched, 2).searched_first, STORY_YES);
    arena_release(&arena);
}
END_TEST

START_TEST(the_reason_is_the_decision_else_the_order_else_the_thesis_else_that_of_the_ledger)
{
    struct story_entry list[] = {
        entry("decision", "2026-06-04T09:52:00Z", 3, ID(1), "decided"),
        entry("order", "2026-06-04T09:53:00Z", 4, ID(2), "ordered"),
        entry("thesis.opened", "2026-06-04T09:50:00Z", 1, ID(3), "believed"),
        entry("decision", "2026-06-04T10:30:00Z", 9, ID(4), "later"),
    };
    ck_assert_str_eq(summary_of(list, 4).why.text, "decided");
    struct story_entry no_decision[] = {
        entry("order", "2026-06-04T09:53:00Z", 4, ID(2), "ordered"),
        entry("thesis.opened", "2026-06-04T09:50:00Z", 1, ID(3), "believed"),
    };
    ck_assert_str_eq(summary_of(no_decision, 2).why.text, "ordered");
    struct story_entry silent[] = {
        entry("order", "2026-06-04T09:53:00Z", 4, ID(2), NULL),
        entry("thesis.opened", "2026-06-04T09:50:00Z", 1, ID(3), "believed"),
    };
    ck_assert_str_eq(summary_of(silent, 2).why.text, "believed");
    ck_assert_str_eq(summary_of(silent, 1).why.source, "thesis.opened");
    ck_assert_str_eq(summary_of(NULL, 0).why.source, "entry_reason");
    arena_release(&arena);
}
END_TEST

START_TEST(the_thesis_at_the_entry_is_the_version_that_was_open_then)
{
    struct story_entry list[] = {
        entry("thesis.opened", "2026-06-04T09:00:00Z", 1, ID(1), "first"),
        entry("thesis.changed", "2026-06-04T09:30:00Z", 2, ID(1), "second"),
        entry("thesis.changed", "2026-06-04T11:00:00Z", 3, ID(1), "while held"),
    };
    ck_assert_str_eq(summary_of(list, 3).thesis.text, "second");
    struct story_entry closed[] = {
        entry("thesis.opened", "2026-06-04T09:00:00Z", 1, ID(1), "first"),
        entry("thesis.closed", "2026-06-04T09:30:00Z", 2, ID(1), "given up"),
        entry("thesis.opened", "2026-06-04T11:30:00Z", 3, ID(2), "while held"),
    };
    ck_assert_ptr_null(summary_of(closed, 3).thesis.source);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("story", a_whole_story_is_as_in_the_golden_files, a_story_without_a_journal_says_what_is_not_known,
          a_search_counts_only_before_the_order_that_led_to_the_entry,
          the_reason_is_the_decision_else_the_order_else_the_thesis_else_that_of_the_ledger,
          the_thesis_at_the_entry_is_the_version_that_was_open_then)

/* Facts: confidence by source, decay by elapsed time, the built-in write policy, and contradictions. */
#include "core/facts/conflict.h"
#include "core/facts/fact.h"
#include "core/facts/write_policy.h"
#include "tests/core/unit.h"

static const int64_t day_us = INT64_C(86400000000);

static struct decimal number(const char *text)
{
    struct decimal d;
    ck_assert_int_le(decimal_parse(text, &d), DECIMAL_ROUNDED);
    return d;
}

static const char *text_of(struct decimal d)
{
    static char text[DECIMAL_TEXT_SIZE];
    decimal_text(d, text);
    return text;
}

static struct fact_decay rule(void)
{
    return (struct fact_decay){ number("0.05"), number("0.3"), day_us };
}

START_TEST(each_source_has_its_confidence)
{
    static const char *const sources[][2] = {
        { "user_stated", "1.0" },    { "user_correction", "1.0" }, { "tool_verified", "0.9" },
        { "agent_inferred", "0.6" }, { "recalled", "0.5" },        { "external", "0.3" },
    };
    for (size_t i = 0; i < 6; i++) {
        ck_assert_str_eq(fact_sources[i], sources[i][0]);
        ck_assert_str_eq(fact_confidence(sources[i][0]), sources[i][1]);
    }
    ck_assert_ptr_null(fact_sources[6]);
    ck_assert_str_eq(fact_confidence(FACT_SESSION_CORRECTION), "1.0");
    ck_assert_ptr_null(fact_confidence("hearsay"));
}
END_TEST

START_TEST(confidence_falls_by_the_rate_for_each_whole_period)
{
    const struct fact_decay daily = rule();
    struct fact_trust trust = { number("0.6"), 0 };
    ck_assert_int_eq(fact_decay(&trust, &daily, day_us - 1), 0);
    ck_assert_int_eq(fact_decay(&trust, &daily, day_us), 1);
    ck_assert_str_eq(text_of(trust.confidence), "0.55");
    ck_assert_int_eq(fact_decay(&trust, &daily, 4 * day_us + 5), 3);
    ck_assert_str_eq(text_of(trust.confidence), "0.4");
    ck_assert_int_eq(trust.decayed_us, 4 * day_us);
}
END_TEST

START_TEST(a_second_run_at_the_same_time_changes_nothing)
{
    const struct fact_decay daily = rule();
    struct fact_trust trust = { number("0.6"), 0 };
    (void)fact_decay(&trust, &daily, 2 * day_us + 1);
    const struct fact_trust before = trust;
    ck_assert_int_eq(fact_decay(&trust, &daily, 2 * day_us + 1), 0);
    ck_assert_int_eq(decimal_compare(trust.confidence, before.confidence), 0);
    ck_assert_int_eq(trust.decayed_us, before.decayed_us);
}
END_TEST

START_TEST(many_runs_give_what_the_last_one_alone_gives)
{
    const struct fact_decay daily = rule();
    struct fact_trust once = { number("0.6"), 0 }, often = once;
    for (int64_t at = 0; at <= 5 * day_us; at += day_us / 7)
        (void)fact_decay(&often, &daily, at);
    (void)fact_decay(&often, &daily, 5 * day_us);
    (void)fact_decay(&once, &daily, 5 * day_us);
    ck_assert_int_eq(decimal_compare(once.confidence, often.confidence), 0);
    ck_assert_int_eq(once.decayed_us, often.decayed_us);
}
END_TEST

START_TEST(a_run_that_is_dated_before_the_fact_changes_nothing)
{
    const struct fact_decay daily = rule();
    struct fact_trust trust = { number("0.6"), 9 * day_us };
    ck_assert_int_eq(fact_decay(&trust, &daily, day_us), 0);
    ck_assert_str_eq(text_of(trust.confidence), "0.6");
}
END_TEST

START_TEST(confidence_does_not_fall_below_zero_however_long_it_takes)
{
    const struct fact_decay hourly = { number("1"), number("0.3"), 3600000000 };
    struct fact_trust trust = { number("0.6"), INT64_C(-62135596800000000) };
    ck_assert_int_gt(fact_decay(&trust, &hourly, INT64_C(253402300799999999)), 80000000);
    ck_assert_str_eq(text_of(trust.confidence), "0");
    ck_assert(fact_is_below(&trust, &hourly));
}
END_TEST

/* 0.6 - 6 * 0.05 is 0.3 exactly, though not in binary floating point. */
START_TEST(a_confidence_at_the_floor_stays)
{
    const struct fact_decay daily = rule();
    struct fact_trust trust = { number("0.6"), 0 };
    (void)fact_decay(&trust, &daily, 6 * day_us);
    ck_assert(!fact_is_below(&trust, &daily));
    (void)fact_decay(&trust, &daily, 7 * day_us);
    ck_assert(fact_is_below(&trust, &daily));
}
END_TEST

START_TEST(the_built_in_policy_lists_what_is_stored_and_for_how_long)
{
    struct arena arena = { 0 };
    struct buf out = { .arena = &arena };
    write_policy_json(&out);
    ck_assert_str_eq(buf_string(&out),
                     "{\"failed_tool_call\":{\"store\":false,\"ttl_seconds\":null},"
                     "\"intermediate_reasoning\":{\"store\":false,\"ttl_seconds\":null},"
                     "\"session_summary\":{\"store\":false,\"ttl_seconds\":2592000},"
                     "\"speculative_inference\":{\"store\":false,\"ttl_seconds\":null},"
                     "\"task_completion_strategy\":{\"store\":true,\"ttl_seconds\":7776000},"
                     "\"tool_result_verified\":{\"store\":true,\"ttl_seconds\":604800},"
                     "\"user_stated_preference\":{\"store\":true,\"ttl_seconds\":null}}");
    arena_release(&arena);
}
END_TEST

START_TEST(the_list_of_the_policy_has_the_same_rules)
{
    struct arena arena = { 0 };
    struct buf out = { .arena = &arena };
    write_policy_list(&out);
    ck_assert_ptr_nonnull(
        strstr(buf_string(&out),
               "{\"observation_type\":\"tool_result_verified\",\"store\":true,\"ttl_seconds\":604800}"));
    ck_assert_ptr_nonnull(strstr(buf_string(&out), "[{\"observation_type\":\"failed_tool_call\","));
    arena_release(&arena);
}
END_TEST

START_TEST(contradictions_begin_with_the_session_then_the_trusted_then_the_newer)
{
    struct conflict_statement list[] = {
        { .kind = "note", .id = "e", .confidence = "0.6", .at_us = 90 },
        { .kind = "fact", .scope = "b", .confidence = "0.9", .at_us = 10 },
        { .kind = "fact", .scope = "a", .confidence = "1.0", .at_us = 10 },
        { .kind = "lesson", .id = "d", .confidence = "0.9", .at_us = 20 },
        { .kind = "correction", .scope = "a", .confidence = "1.0", .at_us = 5, .corrected = true },
        { .kind = "note", .id = "c", .confidence = "0.6", .at_us = 90 },
    };
    static const char *const order[] = { "correction", "lesson", "fact", "fact", "note", "note" };
    conflict_sort(list, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_str_eq(list[i].kind, order[i]);
    ck_assert_str_eq(list[2].confidence, "1.0");
    ck_assert_str_eq(list[4].id, "c");
}
END_TEST

START_TEST(a_text_has_a_value_only_as_a_word_of_its_own)
{
    static const struct {
        const char *text, *value;
        bool has;
    } cases[] = {
        { "The timezone is Europe/Berlin.", "Europe/Berlin", true },
        { "the timezone is EUROPE/BERLIN now", "Europe/Berlin", true },
        { "Target 15 dollars", "15", true },
        { "Target 15.5 dollars", "15", false },
        { "Target 115 dollars", "15", false },
        { "Target 1,500 dollars", "500", false },
        { "Target: 15.", "15", true },
        { "risk_limit", "risk", false },
        { "übung", "bung", false },
        { "", "x", false },
        { "x", "", false },
        { "short", "shorter", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(conflict_text_has(cases[i].text, cases[i].value) == cases[i].has, "%s in %s",
                      cases[i].value, cases[i].text);
}
END_TEST

UNIT_MAIN("facts", each_source_has_its_confidence, confidence_falls_by_the_rate_for_each_whole_period,
          a_second_run_at_the_same_time_changes_nothing, many_runs_give_what_the_last_one_alone_gives,
          a_run_that_is_dated_before_the_fact_changes_nothing,
          confidence_does_not_fall_below_zero_however_long_it_takes, a_confidence_at_the_floor_stays,
          the_built_in_policy_lists_what_is_stored_and_for_how_long,
          the_list_of_the_policy_has_the_same_rules,
          contradictions_begin_with_the_session_then_the_trusted_then_the_newer,
          a_text_has_a_value_only_as_a_word_of_its_own)

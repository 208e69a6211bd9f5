/* Lessons: transitions, the block, markup, Markdown and conflicts. */
#include "core/base/tokens.h"
#include "core/lessons/lesson.h"
#include "tests/core/unit.h"

static struct arena arena;

START_TEST(only_status_names_are_recognised)
{
    enum lesson_status status;
    for (int i = 0; i < LESSON_STATUSES; i++) {
        ck_assert(lesson_status_find(lesson_status_names[i], &status));
        ck_assert_int_eq((int)status, i);
    }
    ck_assert_ptr_null(lesson_status_names[LESSON_STATUSES]);
    ck_assert(!lesson_status_find("", &status));
    ck_assert(!lesson_status_find("Proposed", &status));
    ck_assert(!lesson_status_find("validate", &status));
}
END_TEST

START_TEST(only_active_lessons_change_and_none_becomes_proposed)
{
    for (int from = 0; from < LESSON_STATUSES; from++)
        for (int to = 0; to < LESSON_STATUSES; to++) {
            bool expected = (from == LESSON_PROPOSED || from == LESSON_VALIDATED) && to != LESSON_PROPOSED;
            ck_assert_int_eq(lesson_may_become((enum lesson_status)from, (enum lesson_status)to), expected);
        }
    ck_assert(lesson_is_active(LESSON_PROPOSED) && lesson_is_active(LESSON_VALIDATED));
    ck_assert(!lesson_is_active(LESSON_RETIRED) && !lesson_is_active(LESSON_SUPERSEDED));
}
END_TEST

static const char *const newest_first[] = {
    "Shrink macro probabilities by 15%",
    "Read the footnotes before the summary: covenants hide there",
    "Research packs over 40k tokens degrade extraction recall",
};
enum { TAKEAWAYS = sizeof newest_first / sizeof *newest_first };

START_TEST(the_block_has_the_newest_last)
{
    struct buf out = { .arena = &arena };
    struct lesson_block made = lesson_block_render(&out, newest_first, TAKEAWAYS, 2000);
    ck_assert_str_eq(buf_string(&out), unit_file(&arena, "lesson/block.txt"));
    ck_assert_uint_eq(made.count, TAKEAWAYS);
    ck_assert_uint_eq(made.omitted, 0);
    ck_assert_uint_eq(made.tokens, tokens_estimate(out.data, out.len));
    arena_release(&arena);
}
END_TEST

START_TEST(an_empty_library_says_so)
{
    struct buf out = { .arena = &arena };
    struct lesson_block made = lesson_block_render(&out, NULL, 0, 2000);
    ck_assert_str_eq(buf_string(&out), "<learned_patterns>\nSignal, not strategy: avoid rules outrank these "
                                       "lessons.\n(no lessons yet)\n</learned_patterns>\n");
    ck_assert_uint_eq(made.count, 0);
    ck_assert_uint_eq(made.omitted, 0);
    ck_assert_uint_eq(made.tokens, tokens_estimate(out.data, out.len));
    arena_release(&arena);
}
END_TEST

START_TEST(every_budget_is_met_and_the_oldest_are_dropped_first)
{
    size_t shown_before = 0;
    for (size_t budget = 0; budget < 120; budget++) {
        struct buf out = { .arena = &arena };
        struct lesson_block made = lesson_block_render(&out, newest_first, TAKEAWAYS, budget);
        const char *text = buf_string(&out);
        ck_assert_uint_le(made.tokens, budget);
        ck_assert_uint_eq(made.tokens, tokens_estimate(out.data, out.len));
        ck_assert_uint_eq(made.count + made.omitted, TAKEAWAYS);
        ck_assert_uint_ge(made.count, shown_before);
        for (size_t i = 0; i < TAKEAWAYS; i++)
            ck_assert_int_eq(strstr(text, newest_first[i]) != NULL, i < made.count);
        ck_assert_int_eq(out.len > 0, made.count > 0);
        shown_before = made.count;
    }
    ck_assert_uint_eq(shown_before, TAKEAWAYS);
    arena_release(&arena);
}
END_TEST

START_TEST(a_long_takeaway_ends_the_block_even_where_an_older_one_would_fit)
{
    char *large = arena_alloc(&arena, 2001);
    memset(large, 'x', 2000);
    large[2000] = '\0';
    const char *const takeaways[] = { "new", large, "old" };
    struct buf out = { .arena = &arena };
    struct lesson_block made = lesson_block_render(&out, takeaways, 3, 100);
    ck_assert_str_eq(buf_string(&out), "<learned_patterns>\nSignal, not strategy: avoid rules outrank these "
                                       "lessons.\n- new\n</learned_patterns>\n");
    ck_assert_uint_eq(made.omitted, 2);
    arena_release(&arena);
}
END_TEST

START_TEST(the_block_costs_its_estimate_for_odd_takeaways_too)
{
    static const char *const odd[] = { " leading", "trailing ", "- dash", "日本 株", "🚀", "a\tb", "" };
    for (size_t count = 1; count <= sizeof odd / sizeof *odd; count++) {
        struct buf out = { .arena = &arena };
        struct lesson_block made = lesson_block_render(&out, odd, count, 1000);
        ck_assert_uint_eq(made.tokens, tokens_estimate(out.data, out.len));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_tags_of_the_block_are_found_in_any_spelling)
{
    static const char *const markup[] = {
        "<learned_patterns>",        "</learned_patterns>",
        "x </learned_patterns> y",   "</LEARNED_patterns>",
        "< / Learned_Patterns >",    "<\t/\tlearned_patterns",
        "<learned_patterns/>",       "<learned_patterns x=1>",
        "<<learned_patterns>",       "<a></learned_patterns",
        "<learned-patterns>",        "<learned patterns>",
        "</\u00a0learned_patterns>", "<\u200b/learned\u200b_\u2060patterns>",
        "<\u00ad/learned_patterns>",
    };
    static const char *const plain[] = {
        "",
        "learned_patterns",
        "the learned patterns < 5",
        "<learned>",
        "<learned_pattern",
        "a < b, learned_patterns",
        "</learned lessons patterns>",
        "<",
        "</",
        "&lt;learned_patterns",
        "Spreads < 5 bps & depth > 1 M learned patterns hold",
        "<learned_",
    };
    for (size_t i = 0; i < sizeof markup / sizeof *markup; i++)
        ck_assert_msg(lesson_has_markup(markup[i]), "not found: %s", markup[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        ck_assert_msg(!lesson_has_markup(plain[i]), "found: %s", plain[i]);
}
END_TEST

START_TEST(a_lesson_is_exported_as_the_golden_file_shows)
{
    struct buf out = { .arena = &arena };
    lesson_markdown(
        &out, &(struct lesson_text){
                  .id = "01890a5d-ac96-774b-bcce-b302099a8057",
                  .at = "2026-06-04T10:00:00Z",
                  .takeaway = "Shrink *macro* probabilities by 15%",
                  .context = "Two hundred forecasts\non rates and growth.\n\n    not code\n1. not a list",
                  .outcome = "- not a bullet\n# not a heading\n=== <b>x</b> & [a](b) `c` entry_price",
                  .tags = "calibration, macro",
                  .evidence = "decision log 118..318\n1) second\n-5% in 0.25 days\nissue #3",
                  .status = "validated",
                  .status_at = "2026-06-05T09:30:00.5Z",
                  .status_reason = "held out of sample",
                  .metric = "brier_score",
                  .value = "0.180",
                  .baseline = "0.214",
                  .sample_size = "200",
                  .note = "one quarter",
              });
    lesson_markdown(&out, &(struct lesson_text){
                              .id = "01890a5d-ac96-774b-bcce-b302099a8058",
                              .at = "2026-06-04T10:00:00Z",
                              .takeaway = "Read the footnotes first",
                              .context = "c",
                              .outcome = "o",
                              .tags = "filings",
                              .evidence = "e",
                              .status = "superseded",
                              .status_at = "2026-06-06T00:00:00Z",
                              .superseded_by = "01890a5d-ac96-774b-bcce-b302099a8057",
                          });
    ck_assert_str_eq(buf_string(&out), unit_file(&arena, "lesson/markdown.md"));
    arena_release(&arena);
}
END_TEST

START_TEST(conflicts_match_the_data_file)
{
    char *text = unit_file(&arena, "lesson/conflicts.tsv");
    int cases = 0;
    for (char *line; (line = unit_line(&text)); cases++) {
        char *column[3];
        unit_columns(line, column, 3);
        const char *reason = lesson_conflict(column[0], column[1], &arena);
        ck_assert_msg(strcmp(reason ? reason : "-", column[2]) == 0, "\"%s\" and \"%s\": %s", column[0],
                      column[1], reason ? reason : "-");
        ck_assert_msg(!lesson_conflict(column[1], column[0], &arena) == !reason, "only one way round: %s",
                      column[0]);
        ck_assert_ptr_null(lesson_conflict(column[0], column[0], &arena));
    }
    ck_assert_int_gt(cases, 35);
    arena_release(&arena);
}
END_TEST

START_TEST(takeaways_are_duplicates_from_a_similarity_of_six_tenths_on)
{
    ck_assert(lesson_is_duplicate(0.6) && lesson_is_duplicate(1));
    ck_assert(!lesson_is_duplicate(0.599) && !lesson_is_duplicate(0));
}
END_TEST

UNIT_MAIN("lesson", only_status_names_are_recognised, only_active_lessons_change_and_none_becomes_proposed,
          the_block_has_the_newest_last, an_empty_library_says_so,
          every_budget_is_met_and_the_oldest_are_dropped_first,
          a_long_takeaway_ends_the_block_even_where_an_older_one_would_fit,
          the_block_costs_its_estimate_for_odd_takeaways_too, the_tags_of_the_block_are_found_in_any_spelling,
          a_lesson_is_exported_as_the_golden_file_shows, conflicts_match_the_data_file,
          takeaways_are_duplicates_from_a_similarity_of_six_tenths_on)

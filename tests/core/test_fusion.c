/* Search scores: how words, vectors and regimes contribute, and the resulting order. */
#include "core/episodic/fusion.h"

#include <math.h>

#include "tests/core/unit.h"

/* ---- words ---- */

START_TEST(a_rare_word_weighs_more_than_a_common_one)
{
    struct fusion_lexeme words[] = { { .text = "margin", .frequency = 50 },
                                     { .text = "buyback", .frequency = 1 } };
    ck_assert_uint_eq(fusion_choose(words, 2, 100, true, 32), 2);
    ck_assert_str_eq(words[0].text, "buyback");
    ck_assert_double_eq_tol(words[0].idf, log(1 + 99.5 / 1.5), 1e-12);
    ck_assert_double_eq_tol(words[1].idf, log(1 + 50.5 / 50.5), 1e-12);
}
END_TEST

START_TEST(a_word_of_every_entry_still_weighs_something)
{
    struct fusion_lexeme words[] = { { .text = "guidance", .frequency = 1000 } };
    fusion_choose(words, 1, 1000, false, 32);
    ck_assert_double_gt(words[0].idf, 0);
}
END_TEST

START_TEST(equally_rare_words_are_sorted_alphabetically)
{
    struct fusion_lexeme words[] = { { .text = "c" }, { .text = "a" }, { .text = "b", .frequency = 1 } };
    fusion_choose(words, 3, 10, true, 32);
    ck_assert_str_eq(words[0].text, "a");
    ck_assert_str_eq(words[1].text, "c");
    ck_assert_str_eq(words[2].text, "b");
}
END_TEST

START_TEST(of_many_words_the_rarest_are_weighed)
{
    struct fusion_lexeme words[] = { { .text = "a", .frequency = 3 },
                                     { .text = "b", .frequency = 2 },
                                     { .text = "c", .frequency = 1 } };
    ck_assert_uint_eq(fusion_choose(words, 3, 10, true, 2), 2);
    ck_assert_str_eq(words[0].text, "c");
    ck_assert_str_eq(words[1].text, "b");
}
END_TEST

START_TEST(a_common_word_yields_no_candidates_if_a_rare_one_does)
{
    struct fusion_lexeme words[] = { { .text = "rare", .frequency = 200 },
                                     { .text = "common", .frequency = 201 } };
    fusion_choose(words, 2, 1000, false, 32);
    ck_assert(words[0].selective); /* a fifth is not yet common */
    ck_assert(!words[1].selective);
}
END_TEST

START_TEST(a_common_word_yields_candidates_if_no_rarer_one_occurs)
{
    struct fusion_lexeme common[] = { { .text = "a", .frequency = 900 }, { .text = "b", .frequency = 800 } };
    fusion_choose(common, 2, 1000, false, 32);
    ck_assert(common[0].selective && common[1].selective);
    struct fusion_lexeme unseen[] = { { .text = "a", .frequency = 0 }, { .text = "b", .frequency = 800 } };
    fusion_choose(unseen, 2, 1000, false, 32);
    ck_assert(unseen[0].selective && unseen[1].selective);
}
END_TEST

START_TEST(every_word_yields_candidates_if_the_sample_is_complete)
{
    struct fusion_lexeme words[] = { { .text = "rare", .frequency = 1 },
                                     { .text = "common", .frequency = 9 } };
    fusion_choose(words, 2, 10, true, 32);
    ck_assert(words[0].selective && words[1].selective);
}
END_TEST

START_TEST(no_words_and_no_entries_are_accepted)
{
    ck_assert_uint_eq(fusion_choose(NULL, 0, 0, true, 32), 0);
    struct fusion_lexeme word = { .text = "a" };
    ck_assert_uint_eq(fusion_choose(&word, 1, 0, true, 32), 1);
    ck_assert_double_gt(word.idf, 0);
    ck_assert(word.selective);
}
END_TEST

/* ---- scores ---- */

static struct fusion_hit scored(struct fusion_hit hit, double penalty)
{
    fusion_rank(&hit, 1, penalty);
    return hit;
}

START_TEST(the_score_is_the_sum_of_its_parts_digit_for_digit)
{
    for (int i = 0; i < 1000; i++) {
        const struct fusion_hit h = scored((struct fusion_hit){ .id = "a",
                                                                .has_cosine = true,
                                                                .cosine = sin(i),
                                                                .weight = i * 0.001,
                                                                .coverage = 0.7,
                                                                .shared = 3,
                                                                .differing = i % 4 },
                                           0.1234567);
        HOLDS(h.score == h.cosine_part + h.text_part - h.regime_part);
        HOLDS(llabs(h.cosine_part - llround(sin(i) * 1e6)) == 0);
    }
}
END_TEST

START_TEST(the_score_of_words_reaches_half_its_maximum_at_a_weight_of_three)
{
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a", .weight = 0.18, .coverage = 1 }, 0).score,
                     250000);
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a", .weight = 0, .coverage = 1 }, 0).score, 0);
    ck_assert_int_lt(scored((struct fusion_hit){ .id = "a", .weight = 1e6, .coverage = 1 }, 0).score, 500001);
}
END_TEST

START_TEST(the_score_of_words_is_proportional_to_the_covered_share_of_the_query)
{
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a", .weight = 0.18, .coverage = 0.4 }, 0).score,
                     100000);
}
END_TEST

START_TEST(the_penalty_is_the_share_of_the_regime_that_differs)
{
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a", .shared = 2, .differing = 1 }, 0.1).score,
                     -50000);
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a", .shared = 2, .differing = 2 }, 1).regime_part,
                     1000000);
    ck_assert_int_eq(scored((struct fusion_hit){ .id = "a" }, 1).regime_part, 0); /* nothing to compare */
}
END_TEST

START_TEST(an_entry_without_a_vector_is_scored_by_its_words_only)
{
    const struct fusion_hit h =
        scored((struct fusion_hit){ .id = "a", .cosine = 0.9, .weight = 0.18, .coverage = 1 }, 0);
    ck_assert_int_eq(h.cosine_part, 0);
    ck_assert_int_eq(h.score, 250000);
}
END_TEST

START_TEST(hits_are_sorted_by_score_then_newest_first_then_by_id)
{
    struct fusion_hit hits[] = {
        { .id = "d", .has_cosine = true, .cosine = 0.5, .created_us = 1 },
        { .id = "b", .has_cosine = true, .cosine = 0.5, .created_us = 2 },
        { .id = "a", .has_cosine = true, .cosine = 0.5000000001, .created_us = 2 }, /* equal once rounded */
        { .id = "c", .has_cosine = true, .cosine = 0.6, .created_us = 0 },
    };
    fusion_rank(hits, 4, 0);
    ck_assert_str_eq(hits[0].id, "c");
    ck_assert_str_eq(hits[1].id, "a");
    ck_assert_str_eq(hits[2].id, "b");
    ck_assert_str_eq(hits[3].id, "d");
    fusion_rank(NULL, 0, 0);
}
END_TEST

UNIT_MAIN("fusion", a_rare_word_weighs_more_than_a_common_one, a_word_of_every_entry_still_weighs_something,
          equally_rare_words_are_sorted_alphabetically, of_many_words_the_rarest_are_weighed,
          a_common_word_yields_no_candidates_if_a_rare_one_does,
          a_common_word_yields_candidates_if_no_rarer_one_occurs,
          every_word_yields_candidates_if_the_sample_is_complete, no_words_and_no_entries_are_accepted,
          the_score_is_the_sum_of_its_parts_digit_for_digit,
          the_score_of_words_reaches_half_its_maximum_at_a_weight_of_three,
          the_score_of_words_is_proportional_to_the_covered_share_of_the_query,
          the_penalty_is_the_share_of_the_regime_that_differs,
          an_entry_without_a_vector_is_scored_by_its_words_only,
          hits_are_sorted_by_score_then_newest_first_then_by_id)

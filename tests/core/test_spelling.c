/* "Did you mean": close misspellings are found, and nothing that is merely similar. */
#include "core/base/spelling.h"
#include "tests/core/unit.h"

static const char *const known[] = { "id",         "limit", "symbol",    "side", "entry_price",
                                     "exit_price", "as_of", "positions", "live", "paper",
                                     "sim",        "",      "mark_price" };

static const char *meant(const char *word)
{
    struct spelling s = spelling_begin(word);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        spelling_try(&s, known[i]);
    return s.best ? s.best : "";
}

START_TEST(a_close_misspelling_is_recognised)
{
    static const char *const cases[][2] = {
        { "limt", "limit" },
        { "limits", "limit" },
        { "Limit", "limit" },
        { "LIMIT", "limit" },
        { "simbol", "symbol" },
        { "smybol", "symbol" },
        { "symbols", "symbol" },
        { "sdie", "side" },
        { "entryPrice", "entry_price" },
        { "EntryPrice", "entry_price" },
        { "entry-price", "entry_price" },
        { "enty_prise", "entry_price" },
        { "asOf", "as_of" },
        { "as_off", "as_of" },
        { "postions", "positions" },
        { "Live", "live" },
        { "papr", "paper" },
        { "ID", "id" },
        { "exitPrice", "exit_price" },
        { "markprice", "mark_price" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(strcmp(meant(cases[i][0]), cases[i][1]) == 0, "%s: %s", cases[i][0],
                      meant(cases[i][0]));
}
END_TEST

START_TEST(another_word_is_not_taken_for_a_misspelling)
{
    static const char *const words[] = { "",     "x",      "i",          "idx", "sort",   "lim",    "price",
                                         "dead", "sides_", "entry_size", "öö",  "aside_", "lives!!" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strcmp(meant(words[i]), "") == 0, "%s: %s", words[i], meant(words[i]));
    char many[300];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    ck_assert_str_eq(meant(many), "");
    struct spelling s = spelling_begin("limit");
    spelling_try(&s, many);
    ck_assert_ptr_null(s.best);
}
END_TEST

START_TEST(words_of_the_greatest_length_are_compared)
{
    char word[SPELLING_CHARS + 1], other[SPELLING_CHARS + 1];
    memset(word, 'a', SPELLING_CHARS);
    word[SPELLING_CHARS] = '\0';
    memcpy(other, word, sizeof other);
    other[30] = 'b';
    struct spelling s = spelling_begin(word);
    spelling_try(&s, other);
    ck_assert_ptr_eq(s.best, other);
}
END_TEST

UNIT_MAIN("spelling", a_close_misspelling_is_recognised, another_word_is_not_taken_for_a_misspelling,
          words_of_the_greatest_length_are_compared)

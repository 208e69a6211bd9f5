/* Similarity keys: similar texts share a key, others do not. */
#include "core/lessons/similar.h"
#include "tests/core/unit.h"

static int shared(const char *a, const char *b)
{
    int32_t x[SIMILAR_KEYS], y[SIMILAR_KEYS];
    similar_keys("desk", a, x);
    similar_keys("desk", b, y);
    int n = 0;
    for (int i = 0; i < SIMILAR_KEYS; i++)
        n += x[i] == y[i];
    return n;
}

START_TEST(the_same_words_share_every_key)
{
    ck_assert_int_eq(shared("Shrink macro odds by 15%.", "shrink MACRO odds, by 15"), SIMILAR_KEYS);
    ck_assert_int_eq(shared("", " ... "), SIMILAR_KEYS);
}
END_TEST

START_TEST(owners_never_share_a_key)
{
    int32_t x[SIMILAR_KEYS], y[SIMILAR_KEYS];
    similar_keys("desk-1", "Shrink macro odds by 15%.", x);
    similar_keys("desk-2", "Shrink macro odds by 15%.", y);
    for (int i = 0; i < SIMILAR_KEYS; i++)
        for (int j = 0; j < SIMILAR_KEYS; j++)
            ck_assert_int_ne(x[i], y[j]);
}
END_TEST

START_TEST(nearly_the_same_text_shares_a_key)
{
    ck_assert_int_gt(shared("Guidance language of technology issuers reads more negative than it is",
                            "Guidance language of technology issuers reads far more negative than it is"),
                     0);
    ck_assert_int_gt(shared("Cap research packs at 40K tokens", "Cap research packs at 30K tokens"), 0);
}
END_TEST

/* Random words: few pairs may share a key by chance, or the index is useless. */
START_TEST(dissimilar_texts_rarely_share_a_key)
{
    unsigned seed = 7;
    int met = 0;
    enum { PAIRS = 2000 };
    for (int i = 0; i < PAIRS; i++) {
        char text[2][160];
        for (int t = 0; t < 2; t++) {
            size_t len = 0;
            for (int w = 0; w < 12; w++) {
                for (int c = 0; c < 7; c++)
                    text[t][len++] = (char)('a' + rand_r(&seed) % 26);
                text[t][len++] = ' ';
            }
            text[t][len] = '\0';
        }
        met += shared(text[0], text[1]) > 0;
    }
    ck_assert_int_lt(met, PAIRS / 100);
}
END_TEST

/* Texts of 40 words with n of them replaced: the more, the fewer share a key. At a similarity of 0.6 nearly
 * all do. */
START_TEST(texts_that_share_most_trigrams_nearly_always_share_a_key)
{
    unsigned seed = 11;
    int met = 0;
    enum { PAIRS = 500, WORDS = 40, REPLACED = 10 }; /* 30 of 50 different words are shared: 0.6 */
    for (int i = 0; i < PAIRS; i++) {
        char text[2][512];
        size_t len = 0;
        for (int w = 0; w < WORDS; w++) {
            for (int c = 0; c < 6; c++, len++) {
                text[0][len] = (char)('a' + rand_r(&seed) % 26);
                text[1][len] = text[0][len];
                if (w < REPLACED)
                    text[1][len] = (char)('a' + rand_r(&seed) % 26);
            }
            text[0][len] = text[1][len] = ' ';
            len++;
        }
        text[0][len] = text[1][len] = '\0';
        met += shared(text[0], text[1]) > 0;
    }
    ck_assert_int_gt(met, PAIRS * 95 / 100);
}
END_TEST

UNIT_MAIN("similar", the_same_words_share_every_key, owners_never_share_a_key,
          nearly_the_same_text_shares_a_key, dissimilar_texts_rarely_share_a_key,
          texts_that_share_most_trigrams_nearly_always_share_a_key)

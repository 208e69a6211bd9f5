/* The token estimate. */
#include "core/base/tokens.h"
#include "tests/core/unit.h"

static const struct {
    const char *text;
    size_t tokens;
} rules[] = {
    { "", 0 },
    { "a", 1 },
    { "four", 1 },
    { "fiver", 2 },
    { "two words", 3 },
    { "two  words", 4 },
    { " ", 0 },
    { "   ", 2 },
    { "AAPL", 2 },
    { "NVDA beats", 4 },
    { "1", 1 },
    { "12", 1 },
    { "2026", 2 },
    { "0.25%", 4 },
    { "a\n", 2 },
    { "\n\n", 2 },
    { "\t", 1 },
    { "<learned_patterns>", 7 },
    { "- shrink by 15%\n", 7 },
    { "é", 1 },
    { "€", 2 },
    { "日本", 4 },
    { "🚀", 3 },
    { "don't", 3 },
    { "01a1f5b0-e7d1-7c04-b2be-68fd2e2a9d2e", 26 },
    { "11111111-1111-7111-8111-111111111111", 26 },
    { "aaaaaaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa", 26 },
    { "- [01a1f5b0-e7d1-7c04-b2be-68fd2e2a9d2e] it\n", 31 },
    { "01a1f5b0-e7d1-7c04-b2be-68fd2e2a9d2", 30 },
    { "x11111111-1111-7111-8111-111111111111", 21 },
    { "11111111-1111-7111-8111-1111111111112", 21 },
};

START_TEST(each_rule_counts_as_documented)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        ck_assert_msg(tokens_estimate(rules[i].text, strlen(rules[i].text)) == rules[i].tokens,
                      "\"%s\" is %zu", rules[i].text, tokens_estimate(rules[i].text, strlen(rules[i].text)));
}
END_TEST

START_TEST(the_estimate_of_a_text_is_the_sum_of_its_lines)
{
    static const char pieces[] = "ab XY09  .,\t-";
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char text[120];
        size_t len = 0;
        while (len < sizeof text - 1) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            char c = random >> 60 == 0 ? '\n' : pieces[(random >> 33) % (sizeof pieces - 1)];
            text[len++] = c;
        }
        text[len] = '\0';
        size_t sum = 0;
        for (const char *line = text; *line;) {
            size_t part = strcspn(line, "\n");
            part += line[part] == '\n';
            sum += tokens_estimate(line, part);
            line += part;
        }
        HOLDS(tokens_estimate(text, len) == sum);
    }
}
END_TEST

START_TEST(more_text_never_costs_less)
{
    static const char text[] =
        "Probability estimates on macro topics run over-confident: shrink by 15% (n = 120), "
        "NVDA and BTC-USD included.\n- 0.25 → 0.10 🚀";
    size_t before = 0;
    for (size_t len = 0; len < sizeof text; len++) {
        size_t now = tokens_estimate(text, len);
        ck_assert_uint_ge(now, before);
        before = now;
    }
}
END_TEST

UNIT_MAIN("tokens", each_rule_counts_as_documented, the_estimate_of_a_text_is_the_sum_of_its_lines,
          more_text_never_costs_less)

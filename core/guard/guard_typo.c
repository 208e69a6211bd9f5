/* Misspelled words of the rules: "ignroe", "instrctions", "prevoius". */
#include <string.h>

#include "core/base/spelling.h"
#include "core/guard/guard_internal.h"

/* Words that most attacks need, and that no other word of trading is close to. */
static const char *const words[] = { "ignore",       "disregard",   "forget",       "override",
                                     "bypass",       "previous",    "earlier",      "preceding",
                                     "prompt",       "system",      "password",     "reveal",
                                     "secret",       "directives",  "guidelines",   "restrictions",
                                     "instructions", "instruction", "unrestricted", "uncensored",
                                     "unfiltered",   "developer",   "credentials" };

enum { LETTERS_MIN = 5, LETTERS_MAX = 14 };

static uint32_t letters_of(const char *word, size_t len)
{
    uint32_t letters = 0;
    for (size_t i = 0; i < len; i++)
        letters |= 1u << (word[i] & 31);
    return letters;
}

/* The same letters in another order: people read it all the same. */
static bool is_scrambled(const char *word, const char *known, size_t len)
{
    int count[32] = { 0 };
    for (size_t i = 0; i < len; i++) {
        count[word[i] & 31]++;
        count[known[i] & 31]--;
    }
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i])
            return false;
    return true;
}

static bool is_misspelled(const char *word, size_t len, const char *known)
{
    char text[LETTERS_MAX + 1];
    memcpy(text, word, len);
    text[len] = '\0';
    struct spelling s = spelling_begin(text);
    s.distance = 1; /* two mistakes are too many: "ignite" */
    spelling_try(&s, known);
    return s.best != NULL;
}

/* The first and the last letter must be right: these are the mistakes that readers do not notice. */
struct guard_entries guard_typo_look(const char *word, size_t len)
{
    if (len >= LETTERS_MIN && len <= LETTERS_MAX) {
        const uint32_t letters = letters_of(word, len);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const size_t known = strlen(words[i]);
            if (words[i][0] != word[0] || words[i][known - 1] != word[len - 1] || known > len + 1 ||
                len > known + 1 || __builtin_popcount(letters ^ letters_of(words[i], known)) > 2)
                continue;
            if ((known == len && is_scrambled(word, words[i], len)) || is_misspelled(word, len, words[i]))
                return guard_match_look(words[i], known);
        }
    }
    return (struct guard_entries){ { 0, 0 } };
}

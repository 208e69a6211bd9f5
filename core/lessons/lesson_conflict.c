/* Lessons that contradict each other: a heuristic over the words of two takeaways. */
#include "core/lessons/lesson.h"

#include "core/base/utf8.h"

/* Opposites: one text has the first word, the other text the second. Compared by their stems. */
static const char *const opposites[][2] = {
    { "increase", "decrease" },
    { "increase", "reduce" },
    { "increase", "cut" },
    { "raise", "lower" },
    { "raise", "reduce" },
    { "raise", "cut" },
    { "add", "reduce" },
    { "add", "cut" },
    { "add", "remove" },
    { "widen", "tighten" },
    { "widen", "narrow" },
    { "wide", "tight" },
    { "wider", "tighter" },
    { "over", "under" },
    { "above", "below" },
    { "up", "down" },
    { "more", "less" },
    { "more", "fewer" },
    { "most", "least" },
    { "high", "low" },
    { "higher", "lower" },
    { "large", "small" },
    { "larger", "smaller" },
    { "fast", "slow" },
    { "early", "late" },
    { "earlier", "later" },
    { "before", "after" },
    { "first", "last" },
    { "always", "never" },
    { "with", "without" },
    { "avoid", "prefer" },
    { "avoid", "favor" },
    { "avoid", "favour" },
    { "avoid", "seek" },
    { "trust", "distrust" },
    { "follow", "fade" },
    { "follow", "ignore" },
    { "include", "exclude" },
    { "accept", "reject" },
    { "allow", "forbid" },
    { "enable", "disable" },
    { "start", "stop" },
    { "enter", "exit" },
    { "open", "close" },
    { "buy", "sell" },
    { "long", "short" },
    { "bullish", "bearish" },
    { "bull", "bear" },
    { "strong", "weak" },
    { "positive", "negative" },
    { "maximum", "minimum" },
    { "overweight", "underweight" },
    { "overestimate", "underestimate" },
    { "overconfident", "underconfident" },
    { "outperform", "underperform" },
};

static const char *const negations[] = {
    "not",   "no",    "never",  "dont",     "doesnt",  "didnt", "cannot",  "cant",  "wont", "isnt",
    "arent", "wasnt", "werent", "shouldnt", "neither", "nor",   "without", "avoid", "stop",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct word {
    const char *text; /* lower case */
    size_t stem;
    bool number, used;
};

struct words {
    struct word *items;
    size_t count;
};

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(uint32_t c)
{
    if (c < 0x80)
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return c >= 0xc0 && !(c >= 0x2000 && c <= 0x206f) && !(c >= 0x3000 && c <= 0x303f) && !utf8_is_space(c);
}

/* The length of the word without its ending: increase, increases, increased, increasing. */
static size_t stem_len(const char *word, size_t len)
{
    static const char *const endings[] = { "ing", "ed", "es", "s", "e" };
    for (size_t i = 0; i < COUNT(endings); i++) {
        size_t end = strlen(endings[i]);
        if (len < end + 3 || memcmp(word + len - end, endings[i], end) != 0)
            continue;
        len -= end;
        bool doubled = word[len - 1] == word[len - 2] && strchr("bgmnprt", word[len - 1]);
        return end > 1 && doubled ? len - 1 : len; /* stopped, cutting */
    }
    return len;
}

static bool same_stem(const struct word *w, const char *other)
{
    if (w->text[0] != other[0])
        return false;
    size_t stem = stem_len(other, strlen(other));
    return w->stem == stem && memcmp(w->text, other, stem) == 0;
}

/* Copies the word at `*at` to `*to`, in lower case and without apostrophes. A number keeps its sign, its
 * points and its percent sign. */
static void read_word(const char **at, bool minus, char **to, struct word *out)
{
    char *put = *to;
    out->text = put;
    out->number = is_digit((unsigned char)**at);
    if (out->number && minus)
        *put++ = '-';
    for (const char *next = *at; *next; *at = next) {
        uint32_t c = utf8_next(&next);
        unsigned char after = (unsigned char)*next;
        if (!out->number && (c == '\'' || c == 0x2019) && (after >= 0x80 || is_word(after)))
            continue;
        bool point = out->number && (c == '.' || c == ',') && is_digit(after);
        if (!is_word(c) && !point) {
            if (out->number && c == '%') {
                *put++ = '%';
                *at = next;
            }
            break;
        }
        size_t len = (size_t)(next - *at);
        memcpy(put, *at, len);
        if (c >= 'A' && c <= 'Z')
            *put = (char)(c - 'A' + 'a');
        put += len;
    }
    size_t len = (size_t)(put - out->text);
    out->stem = out->number ? len : stem_len(out->text, len);
    *put++ = '\0';
    *to = put;
}

static struct words split_words(const char *text, struct arena *arena)
{
    size_t len = strlen(text);
    size_t most = len / 2 + 1; /* there is a separator between two words */
    struct words words = { .items = arena_alloc(arena, most * sizeof *words.items) };
    char *to = arena_alloc(arena, len + 2 * most); /* a sign and a NUL for each */
    uint32_t before = ' ';
    while (*text) {
        const char *next = text;
        uint32_t c = utf8_next(&next);
        if (is_word(c)) {
            struct word *word = &words.items[words.count++];
            *word = (struct word){ 0 };
            read_word(&text, before == '-', &to, word);
            before = 'a';
            continue;
        }
        /* A minus is a sign only if nothing precedes it: "10-15%" is a range. */
        before = c == '-' && before != ' ' && before != '(' ? 'a' : c;
        text = next;
    }
    return words;
}

static struct word *find_word(const struct words *words, const char *wanted)
{
    for (size_t i = 0; i < words->count; i++)
        if (same_stem(&words->items[i], wanted))
            return &words->items[i];
    return NULL;
}

/* True when `a` has only `left` and `b` only `right`. Both are marked as used. */
static bool opposed(const struct words *a, const struct words *b, const char *left, const char *right)
{
    struct word *in_a = find_word(a, left);
    struct word *in_b = in_a ? find_word(b, right) : NULL;
    if (!in_b || in_a->used || in_b->used || find_word(a, right) || find_word(b, left))
        return false;
    in_a->used = in_b->used = true;
    return true;
}

static const char *negation(const struct words *words)
{
    for (size_t i = 0; i < COUNT(negations); i++) {
        const struct word *w = find_word(words, negations[i]);
        if (w && !w->used)
            return negations[i];
    }
    return NULL;
}

/* The first numbers that differ, if both texts have the same words in the same order; else NULL. */
static const char *other_numbers(const struct words *a, const struct words *b, struct arena *arena)
{
    const char *reason = NULL;
    if (a->count != b->count)
        return NULL;
    for (size_t i = 0; i < a->count; i++) {
        const struct word *x = &a->items[i], *y = &b->items[i];
        if (x->number != y->number)
            return NULL;
        bool same = x->stem == y->stem && memcmp(x->text, y->text, x->stem) == 0;
        if (!x->number && !same)
            return NULL;
        if (!same && !reason)
            reason = arena_fmt(arena, "the same words with other numbers: %s and %s", x->text, y->text);
    }
    return reason;
}

const char *lesson_conflict(const char *text_a, const char *text_b, struct arena *arena)
{
    struct words a = split_words(text_a, arena), b = split_words(text_b, arena);
    const char *reason = NULL;
    int turns = 0; /* an even number of opposites and negations cancels out */
    for (size_t i = 0; i < COUNT(opposites); i++)
        for (int side = 0; side < 2; side++) {
            const char *left = opposites[i][side], *right = opposites[i][1 - side];
            if (!opposed(&a, &b, left, right))
                continue;
            turns++;
            if (!reason)
                reason = arena_fmt(arena, "one says \"%s\", the other \"%s\"", left, right);
        }
    const char *not_a = negation(&a), *not_b = negation(&b);
    if (!not_a != !not_b) {
        turns++;
        if (!reason)
            reason = arena_fmt(arena, "only one of them says \"%s\"", not_a ? not_a : not_b);
    }
    if (turns == 0)
        return other_numbers(&a, &b, arena);
    return turns % 2 ? reason : NULL;
}

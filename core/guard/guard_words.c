/* Reading folded text as words, also those in leetspeak, with gaps between their letters or without spaces.
 */
#include <string.h>

#include "core/base/utf8.h"
#include "core/guard/guard_internal.h"

enum {
    JOINED_MAX = 256,    /* letters of a word with gaps */
    SPACED_MIN = 4,      /* letters that make one */
    SPACED_NEXT_MIN = 2, /* directly after another one */
    SEPARATOR_MAX = 3,
    COMPOUND_MIN = 12, /* letters of a word that may be several */
    LEET_MAX = 40,
    IDEOGRAPHS_BYTES = 27,
    WALLET_MIN = 26, /* characters of an address in base58 or bech32 */
};

struct reading {
    struct guard_match *match;
    struct guard_marks marks;
    const char *text;
    size_t len, at;
    unsigned disguises;
    size_t spaced_end; /* of the last word with gaps */
};

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
    return is_letter(c) || is_digit(c);
}

/* Scripts without spaces between words. */
static bool is_ideograph(uint32_t c)
{
    return (c >= 0xe00 && c < 0xf00) || (c >= 0x3005 && c <= 0x3007) || (c >= 0x3041 && c < 0xa4d0) ||
           (c >= 0xac00 && c < 0xd7b0) || (c >= 0xf900 && c < 0xfb00) || (c >= 0x20000 && c < 0x32000);
}

static bool is_symbol(uint32_t c)
{
    return c < 0xaa || (c > 0xaa && c < 0xb5) || (c > 0xb5 && c < 0xc0) || c == 0xd7 || c == 0xf7 ||
           (c >= 0x2000 && c < 0x2c00) || (c >= 0x3000 && c < 0x3041) || (c >= 0xe000 && c < 0xf900) ||
           (c >= 0xfe10 && c < 0xfe70) || (c >= 0x1f000 && c < 0x20000) || c >= 0xe0000;
}

/* ---- one word ---- */

static bool is_listed(struct guard_entries e)
{
    return e.entry[0] || e.entry[1];
}

static char leet_letter(char c, bool second)
{
    static const char signs[] = "0134578@$!|+", letters[] = "oieastbasilt";
    const char *sign = strchr(signs, c);
    if (!c || !sign)
        return c;
    return second && (c == '1' || c == '!' || c == '|') ? (c == '|' ? 'i' : 'l') : letters[sign - signs];
}

/* Looks up the letters that digits and signs stand for: "1gn0r3", "$y$tem". */
static struct guard_entries look_leet(const char *word, size_t len)
{
    char letters[LEET_MAX];
    struct guard_entries found = { { 0, 0 } };
    if (len < 3 || len > LEET_MAX)
        return found;
    for (int variant = 0; variant < 2 && !found.entry[0]; variant++) {
        for (size_t i = 0; i < len; i++)
            letters[i] = leet_letter(word[i], variant);
        found = guard_match_look(letters, len);
    }
    return found;
}

/* A word of another script of which every letter looks like a Latin one. */
static struct guard_entries look_alike(const char *word, size_t len)
{
    char letters[LEET_MAX];
    size_t n = 0;
    const char *at = word;
    while (at < word + len) {
        const uint32_t c = utf8_next(&at);
        const char like = fold_lookalike(c);
        if (!like || n == LEET_MAX)
            return (struct guard_entries){ { 0, 0 } };
        letters[n++] = like;
    }
    return n < 3 ? (struct guard_entries){ { 0, 0 } } : guard_match_look(letters, n);
}

/* Reads letters without spaces as words of the lists, if most of them are. `at` has the offset of each
 * letter, or is NULL if they follow each other from `start`. */
static bool read_compound(struct reading *r, const char *letters, size_t len, size_t start,
                          const uint32_t *at)
{
    enum { PARTS_MAX = 32, PART_MIN = 3 };
    struct guard_entries entries[PARTS_MAX];
    size_t from[PARTS_MAX], parts = 0, covered = 0, width[PARTS_MAX];
    for (size_t i = 0; i < len && parts < PARTS_MAX;) {
        size_t long_as = guard_match_longest(letters + i, len - i, &entries[parts]);
        if (long_as < PART_MIN)
            long_as = 0;
        if (long_as) {
            from[parts] = i;
            width[parts++] = long_as;
            covered += long_as;
        }
        i += long_as ? long_as : 1;
    }
    if (parts < (at ? 1 : 2) || covered * 5 < len * 4)
        return false;
    r->disguises |= FOLD_SPACED;
    for (size_t i = 0; i < parts; i++) {
        const size_t last = from[i] + width[i] - 1;
        const struct guard_token t = { at ? at[from[i]] : start + from[i],
                                       (at ? at[last] : start + last) + 1 };
        guard_match_word(r->match, t, entries[i]);
    }
    return true;
}

/* ---- letters with gaps ---- */

/* Collects "i g n o r e" or "i.g.n.o.r.e" from `start` on: single letters with the same separator between
 * all. Returns how many. */
static size_t collect_spaced(const struct reading *r, size_t start, char *letters, uint32_t *offsets)
{
    size_t separator = 0, n = 0, at = start;
    while (separator <= SEPARATOR_MAX && start + 1 + separator < r->len &&
           !is_plain(r->text[start + 1 + separator]) &&
           (unsigned char)r->text[start + 1 + separator] < 0x80 && r->text[start + 1 + separator] != '\n')
        separator++;
    if (separator == 0 || separator > SEPARATOR_MAX)
        return 0;
    const char *between = r->text + start + 1;
    while (n < JOINED_MAX && at < r->len && is_plain(r->text[at])) {
        letters[n] = r->text[at];
        offsets[n++] = (uint32_t)at;
        if (at + 1 + separator >= r->len || memcmp(r->text + at + 1, between, separator) != 0)
            break;
        at += 1 + separator;
    }
    /* The last one may begin a word of its own: "a b c def". */
    if (n && (size_t)offsets[n - 1] + 1 < r->len && is_plain(r->text[offsets[n - 1] + 1]))
        n--;
    return n;
}

static bool read_spaced(struct reading *r, size_t start)
{
    char letters[JOINED_MAX];
    uint32_t offsets[JOINED_MAX];
    const size_t n = collect_spaced(r, start, letters, offsets);
    const bool follows = r->spaced_end && start - r->spaced_end <= SEPARATOR_MAX + 3;
    if (n < (follows ? SPACED_NEXT_MIN : SPACED_MIN))
        return false;
    size_t real = 0;
    for (size_t i = 0; i < n; i++) {
        real += is_letter(letters[i]);
        letters[i] = leet_letter(letters[i], false);
    }
    if (real * 2 < n)
        return false;
    const struct guard_entries whole = guard_match_look(letters, n);
    r->at = r->spaced_end = offsets[n - 1] + 1;
    if (is_listed(whole))
        r->disguises |= FOLD_SPACED;
    if (is_listed(whole) || !read_compound(r, letters, n, start, offsets))
        guard_match_word(r->match, (struct guard_token){ start, r->at }, whole);
    return true;
}

/* ---- words ---- */

/* A sign that may stand for a letter, between two letters. */
static bool joins(const struct reading *r, size_t at, size_t start)
{
    const char c = r->text[at];
    if (c != '@' && c != '$' && c != '!' && c != '|' && c != '\'' && c != '+')
        return false;
    return at > start && at + 1 < r->len && is_plain(r->text[at + 1]);
}

struct shape {
    bool letters, digits, signs, beyond, at_sign;
};

static size_t word_end(const struct reading *r, size_t start, struct shape *shape)
{
    size_t at = start;
    while (at < r->len) {
        const char c = r->text[at];
        if (is_letter(c)) {
            shape->letters = true;
        } else if (is_digit(c)) {
            shape->digits = true;
        } else if ((unsigned char)c >= 0x80) {
            const char *next = r->text + at;
            const uint32_t character = utf8_next(&next);
            if (is_symbol(character) || is_ideograph(character))
                break;
            shape->beyond = true;
            at = (size_t)(next - r->text);
            continue;
        } else if (joins(r, at, start)) {
            shape->signs |= c != '\'';
            shape->at_sign |= c == '@';
        } else {
            break;
        }
        at++;
    }
    return at;
}

static bool follows_text(const struct reading *r, size_t at, const char *what)
{
    const size_t len = strlen(what);
    return r->len - at >= len && memcmp(r->text + at, what, len) == 0;
}

/* Addresses of the web, of mail and of wallets. */
static bool read_address(struct reading *r, size_t start, size_t end, const struct shape *shape)
{
    const size_t len = end - start;
    enum guard_mark mark = GUARD_MARKS;
    if ((len == 4 || len == 5) && memcmp(r->text + start, "http", 4) == 0 && follows_text(r, end, "://"))
        mark = MARK_URL;
    else if (len == 3 && memcmp(r->text + start, "www", 3) == 0 && follows_text(r, end, "."))
        mark = MARK_URL;
    else if (shape->at_sign && end + 1 < r->len && r->text[end] == '.' && is_letter(r->text[end + 1]))
        mark = MARK_MAIL;
    else if (shape->digits && shape->letters && !shape->signs && !shape->beyond &&
             ((len >= 10 && r->text[start] == '0' && r->text[start + 1] == 'x') || len >= WALLET_MIN))
        mark = MARK_WALLET;
    if (mark == GUARD_MARKS)
        return false;
    guard_match_mark(r->match, (struct guard_token){ start, end }, mark);
    return true;
}

static void read_word(struct reading *r)
{
    const size_t start = r->at;
    struct shape shape = { 0 };
    const size_t end = word_end(r, start, &shape);
    if (end - start == 1 && !shape.beyond && read_spaced(r, start))
        return;
    r->at = end;
    if (read_address(r, start, end, &shape))
        return;
    struct guard_entries found = guard_match_look(r->text + start, end - start);
    if (!is_listed(found)) {
        const char before = start > 0 ? r->text[start - 1] : ' ';
        if (shape.beyond) {
            found = look_alike(r->text + start, end - start);
            r->disguises |= is_listed(found) ? FOLD_LOOKALIKES : 0;
        } else if (shape.letters && (shape.digits || shape.signs)) {
            found = look_leet(r->text + start, end - start);
            r->disguises |= is_listed(found) ? FOLD_LEET : 0;
        } else if (shape.letters && (before == '$' || before == '@' || before == '!' || before == '|')) {
            found = look_leet(r->text + start - 1, end - start + 1);
            r->disguises |= is_listed(found) ? FOLD_LEET : 0;
        } else if (end - start >= COMPOUND_MIN && end - start <= JOINED_MAX &&
                   read_compound(r, r->text + start, end - start, start, NULL)) {
            return;
        } else {
            found = guard_typo_look(r->text + start, end - start);
        }
    }
    guard_match_word(r->match, (struct guard_token){ start, end }, found);
}

static void read_ideographs(struct reading *r, size_t width)
{
    struct guard_entries entries;
    const size_t left = r->len - r->at;
    const size_t len =
        guard_match_longest(r->text + r->at, left < IDEOGRAPHS_BYTES ? left : IDEOGRAPHS_BYTES, &entries);
    const struct guard_token t = { r->at, r->at + (len > width ? len : width) };
    guard_match_word(r->match, t, entries);
    r->at = t.end;
}

/* ---- between words ---- */

static bool ends_sentence(const struct reading *r)
{
    const char c = r->text[r->at], next = r->at + 1 < r->len ? r->text[r->at + 1] : '\n';
    if (c == '.' || c == '!' || c == '?' || c == ';')
        return next == ' ' || next == '\n' || next == '\r' || next == '"' || next == ')';
    return c == '\n' && (next == '\n' || next == '-' || next == '*' || next == '#' || next == '\r');
}

static void read_mark(struct reading *r)
{
    const char c = r->text[r->at];
    if (c == ' ') {
        r->at++;
        return;
    }
    guard_marks_look(&r->marks, r->match, r->text, r->len, r->at);
    if (ends_sentence(r))
        guard_match_stop_sentence(r->match);
    r->at++;
}

unsigned guard_words_read(struct guard_match *m, const char *text, size_t len)
{
    struct reading r = { .match = m, .text = text, .len = len };
    guard_marks_begin(&r.marks, m, text, len);
    while (r.at < len && !guard_match_stopped(m)) {
        const char c = text[r.at];
        if (is_plain(c)) {
            read_word(&r);
        } else if ((unsigned char)c < 0x80) {
            read_mark(&r);
        } else {
            const char *next = text + r.at;
            const uint32_t character = utf8_next(&next);
            if (is_ideograph(character))
                read_ideographs(&r, (size_t)(next - text) - r.at);
            else if (is_symbol(character))
                r.at = (size_t)(next - text);
            else
                read_word(&r);
        }
    }
    return r.disguises;
}

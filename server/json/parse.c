/* JSON bodies: text to json_t, with every fault that a body can have refused by name. */
#include "server/json/parse.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/utf8.h"

enum { DEPTH_MOST = 512, WORD_SHOWN = 32, KEY_SHOWN = 64 };

/* How a number is handed to jansson: quote, mark, digits, quote. */
static const char mark[] = "\"\\u0000";
enum { MARK_BYTES = sizeof mark - 1, NUMBER_GROWS = MARK_BYTES + 1 };

enum expect { KEY_OR_END, KEY, COLON, VALUE, VALUE_OR_END, COMMA_OR_END, NOTHING };

struct scan {
    const char *body, *at, *end;
    int depth, depth_limit;
    char open[DEPTH_MOST]; /* the bracket that opened each level */
    struct buf out;        /* the body with its numbers marked; unused while there are none */
    const char *copied;    /* up to here it is in `out` */
    struct problem *p;
};

/* "line 3, column 14", counted in characters from 1. */
static const char *position(const struct scan *s, const char *at)
{
    int line = 1;
    const char *start = s->body;
    for (const char *c = s->body; c < at; c++)
        if (*c == '\n') {
            line++;
            start = c + 1;
        }
    return arena_fmt(s->p->arena, "line %d, column %zu", line, utf8_count(start, (size_t)(at - start)) + 1);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

/* What stands there, as a person would name it. */
static const char *found(const struct scan *s, const char *at)
{
    if (at == s->end)
        return arena_fmt(s->p->arena, "the end of the %s", problem_about(s->p));
    int len = 0;
    while (len < WORD_SHOWN && at + len < s->end && is_word(at[len]))
        len++;
    if (len > 0)
        return arena_fmt(s->p->arena, "'%.*s'", len, at);
    const char *next = at;
    uint32_t c = utf8_next(&next);
    if (utf8_is_control(c) || utf8_is_space(c) || c == 0xfeff)
        return arena_fmt(s->p->arena, "the character U+%04X", (unsigned)c);
    return arena_fmt(s->p->arena, "'%.*s'", (int)(next - at), at);
}

static enum err unexpected(const struct scan *s, const char *at, const char *expected)
{
    if (at < s->end && *at == '\0')
        return problem_set(s->p, ERR_NULL_CHARACTER, "%s: a NUL character", position(s, at));
    return problem_set(s->p, ERR_INVALID_JSON, "%s: expected %s, found %s", position(s, at), expected,
                       found(s, at));
}

static const char *expected_text(const struct scan *s, enum expect expect)
{
    switch (expect) {
    case KEY_OR_END:
        return "a key in double quotes or '}'";
    case KEY:
        return "a key in double quotes";
    case COLON:
        return "':'";
    case VALUE:
        return "a value";
    case VALUE_OR_END:
        return "a value or ']'";
    case COMMA_OR_END:
        return s->open[s->depth - 1] == '{' ? "',' or '}'" : "',' or ']'";
    case NOTHING:
        break;
    }
    return arena_fmt(s->p->arena, "the end of the %s", problem_about(s->p));
}

/* The four hexadecimal digits behind \u, or -1. */
static int hex4(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* At the backslash; leaves `at` behind the escape, and behind both halves of a surrogate pair. */
static enum err scan_escape(struct scan *s)
{
    const char *start = s->at;
    char c = s->end - start > 1 ? start[1] : '\0';
    if (c != 'u') {
        if (c == '\0' || !strchr("\"\\/bfnrt", c))
            return problem_set(s->p, ERR_INVALID_JSON, "%s: not an escape that JSON knows",
                               position(s, start));
        s->at += 2;
        return OK;
    }
    int unit = hex4(start + 2, s->end);
    s->at += 6;
    if (unit < 0)
        return problem_set(s->p, ERR_INVALID_JSON, "%s: \\u needs four hexadecimal digits",
                           position(s, start));
    if (unit == 0)
        return problem_set(s->p, ERR_NULL_CHARACTER, "%s: \\u0000 cannot be stored", position(s, start));
    if (unit < 0xd800 || unit > 0xdfff)
        return OK;
    int low = s->end - s->at > 2 && s->at[0] == '\\' && s->at[1] == 'u' ? hex4(s->at + 2, s->end) : -1;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return problem_set(s->p, ERR_INVALID_JSON, "%s: half of a surrogate pair", position(s, start));
    s->at += 6;
    return OK;
}

/* At the opening quote; leaves `at` behind the closing one. */
static enum err scan_string(struct scan *s)
{
    const char *start = s->at++;
    for (;;) {
        while (s->at < s->end && (unsigned char)*s->at >= 0x20 && *s->at != '"' && *s->at != '\\')
            s->at++;
        if (s->at == s->end)
            return problem_set(s->p, ERR_INVALID_JSON, "the string that starts at %s has no end",
                               position(s, start));
        if (*s->at == '"') {
            s->at++;
            return OK;
        }
        if (*s->at != '\\')
            return unexpected(s, s->at, "an escape such as \\n for a control character");
        TRY(scan_escape(s));
    }
}

static size_t digits_len(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* True when a double holds it: finite, and zero only if it is zero. Needs a look only when there is an
 * exponent. */
static bool fits_double(const char *text, size_t len)
{
    char copy[NUMBER_CHARS + 1];
    memcpy(copy, text, len);
    copy[len] = '\0';
    double value = strtod(copy, NULL);
    size_t mantissa = strcspn(copy, "eE");
    copy[mantissa] = '\0';
    bool is_zero = !strpbrk(copy, "123456789");
    return isfinite(value) && (value != 0 || is_zero);
}

enum parse_number_fault parse_number_scan(const char *text, size_t len, size_t *used)
{
    size_t at = len > 0 && text[0] == '-';
    size_t whole = digits_len(text + at, len - at);
    if (whole == 0 || (whole > 1 && text[at] == '0'))
        return NUMBER_SYNTAX;
    at += whole;
    if (at < len && text[at] == '.') {
        size_t part = digits_len(text + at + 1, len - at - 1);
        if (part == 0)
            return NUMBER_SYNTAX;
        at += part + 1;
    }
    long exponent = 0;
    bool has_exponent = at < len && (text[at] == 'e' || text[at] == 'E');
    if (has_exponent) {
        at++;
        at += at < len && (text[at] == '+' || text[at] == '-');
        size_t count = digits_len(text + at, len - at);
        if (count == 0)
            return NUMBER_SYNTAX;
        for (size_t i = 0; i < count && exponent <= NUMBER_EXPONENT; i++)
            exponent = exponent * 10 + (text[at + i] - '0');
        at += count;
    }
    *used = at;
    if (at > NUMBER_CHARS || exponent > NUMBER_EXPONENT)
        return NUMBER_RANGE;
    return has_exponent && !fits_double(text, at) ? NUMBER_RANGE : NUMBER_OK;
}

static enum err scan_number(struct scan *s)
{
    size_t used = 0;
    switch (parse_number_scan(s->at, (size_t)(s->end - s->at), &used)) {
    case NUMBER_SYNTAX:
        return unexpected(s, s->at, "a number as JSON writes it");
    case NUMBER_RANGE:
        return problem_set(s->p, ERR_NUMBER_OUT_OF_RANGE,
                           "%s: a number has at most %d characters and must fit a double", position(s, s->at),
                           NUMBER_CHARS);
    case NUMBER_OK:
        break;
    }
    if (s->out.len == 0) /* room for a body of ordinary density, so that most need no second piece */
        buf_room(&s->out, (size_t)(s->end - s->body) * 2 + 64);
    buf_add(&s->out, s->copied, (size_t)(s->at - s->copied));
    buf_add(&s->out, mark, MARK_BYTES);
    buf_add(&s->out, s->at, used);
    buf_char(&s->out, '"');
    s->at += used;
    s->copied = s->at;
    return OK;
}

static enum err scan_open(struct scan *s)
{
    if (s->depth == s->depth_limit)
        return problem_set(s->p, ERR_TOO_DEEP, "%s: more than %d levels of nesting", position(s, s->at),
                           s->depth_limit);
    s->open[s->depth++] = *s->at++;
    return OK;
}

/* At the first character of a value; `next` is what must follow the part of it that was read. */
static enum err scan_value(struct scan *s, enum expect *next)
{
    static const char *const words[] = { "true", "false", "null" };
    *next = s->depth ? COMMA_OR_END : NOTHING;
    switch (*s->at) {
    case '{':
        *next = KEY_OR_END;
        return scan_open(s);
    case '[':
        *next = VALUE_OR_END;
        return scan_open(s);
    case '"':
        return scan_string(s);
    case '-':
    case '0' ... '9':
        return scan_number(s);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(s->end - s->at) >= len && memcmp(s->at, words[i], len) == 0) {
            s->at += len;
            return OK;
        }
    }
    return unexpected(s, s->at, "a value");
}

/* One step of the grammar: reads what `*expect` asks for and says what must come next. */
static enum err scan_step(struct scan *s, enum expect *expect)
{
    char c = *s->at;
    bool is_end = *expect == KEY_OR_END ? c == '}'
                  : *expect == VALUE_OR_END
                      ? c == ']'
                      : *expect == COMMA_OR_END && c == (s->open[s->depth - 1] == '{' ? '}' : ']');
    if (is_end) {
        s->at++;
        *expect = --s->depth ? COMMA_OR_END : NOTHING;
        return OK;
    }
    switch (*expect) {
    case KEY_OR_END:
    case KEY:
        if (c != '"')
            break;
        *expect = COLON;
        return scan_string(s);
    case COLON:
        if (c != ':')
            break;
        s->at++;
        *expect = VALUE;
        return OK;
    case COMMA_OR_END:
        if (c != ',')
            break;
        s->at++;
        *expect = s->open[s->depth - 1] == '{' ? KEY : VALUE;
        return OK;
    case VALUE:
    case VALUE_OR_END:
        return scan_value(s, expect);
    case NOTHING:
        break;
    }
    return unexpected(s, s->at, expected_text(s, *expect));
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

/* The whole text, whatever its top level is: a body that is too deep is that first of all. */
static enum err scan_text(struct scan *s)
{
    enum expect expect = VALUE;
    for (skip_space(s); s->at < s->end; skip_space(s))
        TRY(scan_step(s, &expect));
    return expect == NOTHING ? OK : unexpected(s, s->at, expected_text(s, expect));
}

static enum err scan_body(struct scan *s)
{
    skip_space(s);
    const char *top = s->at;
    if (top == s->end)
        return problem_set(s->p, ERR_INVALID_JSON, "the %s is empty: it must be a JSON object",
                           problem_about(s->p));
    TRY(scan_text(s));
    return *top == '{'
               ? OK
               : problem_set(s->p, ERR_INVALID_JSON, "the %s must be a JSON object", problem_about(s->p));
}

/* jansson stopped behind the second of two equal keys, `stopped` bytes into what it was given. */
static enum err duplicate_key(const struct scan *s, const char *given, size_t stopped)
{
    size_t grown = 0;
    for (size_t i = 0; i + MARK_BYTES <= stopped; i++)
        if (memcmp(given + i, mark, MARK_BYTES) == 0)
            grown += NUMBER_GROWS;
    const char *end = s->body + stopped - grown;
    const char *key = s->body + 1, *key_end = key; /* becomes the last string before `end` */
    for (const char *at = s->body; at < end; at++) {
        if (*at != '"')
            continue;
        key = ++at;
        while (*at != '"')
            at += *at == '\\' ? 2 : 1;
        key_end = at;
    }
    size_t len = (size_t)(key_end - key);
    return problem_set(s->p, ERR_DUPLICATE_KEY, "%s: the key \"%.*s%s\" is there twice", position(s, key - 1),
                       (int)utf8_cut(key, len, KEY_SHOWN), key, len > KEY_SHOWN ? "…" : "");
}

enum err parse_body(const char *body, size_t len, int depth_limit, struct arena *arena, json_t **object,
                    struct problem *p)
{
    *object = NULL;
    size_t valid = utf8_check(body, len);
    if (valid != len)
        return problem_set(p, ERR_INVALID_UTF8, "the byte at offset %zu of the %s is not valid UTF-8", valid,
                           problem_about(p));
    struct scan s = { .body = body, .at = body, .end = body + len, .copied = body, .p = p };
    s.depth_limit = depth_limit < DEPTH_MOST ? depth_limit : DEPTH_MOST;
    s.out.arena = arena;
    TRY(scan_body(&s));
    if (s.out.len > 0) {
        buf_add(&s.out, s.copied, (size_t)(s.end - s.copied));
        body = s.out.data;
        len = s.out.len;
    }
    json_error_t error;
    *object = json_loadb(body, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (*object)
        return OK;
    if (json_error_code(&error) == json_error_duplicate_key)
        return duplicate_key(&s, body, (size_t)error.position);
    return problem_set(p, ERR_INVALID_JSON, "%s", error.text);
}

const char *parse_number(const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return NULL;
    const char *text = json_string_value(value);
    return text[0] == '\0' ? text + 1 : NULL;
}

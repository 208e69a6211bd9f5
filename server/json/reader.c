/* The JSON reader: the only JSON parser of the service. */
#include "server/json/reader.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/base/utf8.h"
#include "server/json/number.h"

/* Records the first fault and moves to the terminating NUL. No value starts with NUL, so all later reads fail
 * without checking `fault`. */
static void fail(struct json_reader *r, enum reader_fault fault, const char *at)
{
    if (r->fault == READER_OK) {
        r->fault = fault;
        r->fault_offset = (size_t)(at - r->start);
    }
    r->at = r->end;
}

static void unexpected(struct json_reader *r, const char *expected)
{
    if (r->fault == READER_OK)
        r->expected = expected;
    fail(r, READER_UNEXPECTED, r->at);
}

static void skip_space(struct json_reader *r)
{
    while ((unsigned char)*r->at <= ' ' &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

struct json_reader reader_begin(char *text, size_t len, int depth_limit)
{
    size_t valid = utf8_check(text, len);
    struct json_reader r = { .start = text, .at = text, .end = text + len, .depth_limit = depth_limit };
    if (valid != len)
        fail(&r, READER_UTF8, text + valid);
    skip_space(&r);
    return r;
}

struct json_reader reader_begin_stored(char *text, size_t len)
{
    struct json_reader r = { .start = text, .at = text, .end = text + len, .depth_limit = READER_DEPTH };
    skip_space(&r);
    return r;
}

char reader_peek(const struct json_reader *r)
{
    return *r->at;
}

/* ---- strings ---- */

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *at)
{
    static const char digits[] = "0123456789abcdef";
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit || at[i] < '0')
            return -1;
        value = value << 4 | (int32_t)(digit - digits);
    }
    return value;
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(0xff00 >> (more + 1) | c >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
    return to;
}

/* Reads the digits after "\u", and a second escape if it is a surrogate pair. */
static enum reader_fault take_unicode(char **from, int32_t *out)
{
    int32_t unit = hex4(*from);
    if (unit < 0)
        return READER_HEX;
    *from += 4;
    *out = unit;
    if (unit == 0)
        return READER_NUL;
    if (unit < 0xd800 || unit > 0xdfff)
        return READER_OK;
    int32_t low = (*from)[0] == '\\' && (*from)[1] == 'u' ? hex4(*from + 2) : -1;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return READER_SURROGATE;
    *from += 6;
    *out = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    return READER_OK;
}

/* Reads an escape that starts at a backslash. */
static enum reader_fault take_escape(char **from, int32_t *out)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char c = (*from)[1];
    const char *name = c ? strchr(names, c) : NULL;
    *from += 2;
    if (c == 'u')
        return take_unicode(from, out);
    if (!name)
        return READER_ESCAPE;
    *out = means[name - names];
    return READER_OK;
}

/* The number of bytes from `at` that need no unescaping. */
static size_t plain_len(const struct json_reader *r, const char *at)
{
    return buf_json_plain(at, (size_t)(r->end - at));
}

/* Unescapes the rest of a string in place, from its first escape, and moves to the closing quote. The result
 * is never longer than the escaped form. */
static char *unescape(struct json_reader *r, char *to)
{
    char *from = to;
    while (*from == '\\') {
        char *escape = from;
        int32_t c = 0;
        enum reader_fault fault = take_escape(&from, &c);
        if (fault != READER_OK) {
            fail(r, fault, escape);
            return NULL;
        }
        to = put_utf8(to, c);
        size_t plain = plain_len(r, from);
        memmove(to, from, plain);
        to += plain;
        from += plain;
    }
    if (from == r->end) {
        fail(r, READER_OPEN_STRING, r->at);
        return NULL;
    }
    r->at = from;
    if (*from == '"')
        return to;
    unexpected(r, "an escape such as \\n for a control character");
    return NULL;
}

/* Starts at the opening quote. */
static const char *take_string(struct json_reader *r)
{
    char *text = r->at + 1, *end = text + plain_len(r, text);
    if (*end == '"')
        r->at = end;
    else if (!(end = unescape(r, end)))
        return NULL;
    r->at++;
    *end = '\0';
    return text;
}

const char *reader_text(struct json_reader *r)
{
    if (*r->at == '"')
        return take_string(r);
    reader_skip(r);
    return NULL;
}

/* ---- objects and lists ---- */

static bool enter(struct json_reader *r, char bracket)
{
    if (*r->at != bracket) {
        reader_skip(r);
        return false;
    }
    if (r->depth == r->depth_limit) {
        fail(r, READER_DEPTH_LIMIT, r->at);
        return false;
    }
    r->depth++;
    r->at++;
    r->first = true;
    return true;
}

bool reader_object(struct json_reader *r)
{
    return enter(r, '{');
}

bool reader_list(struct json_reader *r)
{
    return enter(r, '[');
}

static bool leave(struct json_reader *r)
{
    r->at++;
    r->depth--;
    r->first = false;
    return false;
}

/* Moves to the opening quote of the next name. At the end of the object, leaves it and returns false. */
static bool next_name(struct json_reader *r)
{
    skip_space(r);
    if (*r->at == '}')
        return leave(r);
    if (r->first) {
        r->first = false;
        if (*r->at != '"')
            unexpected(r, "a key in double quotes or '}'");
    } else if (*r->at == ',') {
        r->at++;
        skip_space(r);
        if (*r->at != '"')
            unexpected(r, "a key in double quotes");
    } else {
        unexpected(r, "',' or '}'");
    }
    return r->fault == READER_OK;
}

/* Moves from the closing quote of a name to its value. */
static const char *move_to_value(struct json_reader *r, const char *name)
{
    skip_space(r);
    if (*r->at != ':') {
        unexpected(r, "':'");
        return NULL;
    }
    r->at++;
    skip_space(r);
    return name;
}

const char *reader_name(struct json_reader *r)
{
    const char *name = next_name(r) ? take_string(r) : NULL;
    return name ? move_to_value(r, name) : NULL;
}

/* Fast path for compact JSON, which we and PostgreSQL write: one comparison of comma, name and colon. */
const char *reader_name_guess(struct json_reader *r, const char *guess, size_t len)
{
    const char *quote = r->at + 1;
    if (*r->at != ',' || r->first || (size_t)(r->end - r->at) < len + 4 || *quote != '"' ||
        quote[len + 1] != '"' || quote[len + 2] != ':' || memcmp(quote + 1, guess, len) != 0)
        return reader_name(r);
    r->at += len + 4;
    skip_space(r);
    return guess;
}

bool reader_item(struct json_reader *r)
{
    skip_space(r);
    if (*r->at == ']')
        return leave(r);
    if (r->first) {
        r->first = false;
        if (r->at == r->end)
            unexpected(r, "a value or ']'");
    } else if (*r->at == ',') {
        r->at++;
        skip_space(r);
    } else {
        unexpected(r, "',' or ']'");
    }
    return r->fault == READER_OK;
}

/* ---- numbers and words ---- */

static bool starts_number(char c)
{
    return (c >= '0' && c <= '9') || c == '-';
}

static inline char *take_number(struct json_reader *r, size_t *len)
{
    char *digits = r->at;
    if (!starts_number(*digits)) {
        reader_skip(r);
        return NULL;
    }
    *len = number_len(digits);
    if (*len == 0) {
        unexpected(r, "a number as JSON writes it");
        return NULL;
    }
    if (r->limit_numbers && !number_fits(digits, *len)) {
        fail(r, READER_NUMBER_LIMIT, digits);
        return NULL;
    }
    r->at += *len;
    return digits;
}

const char *reader_digits(struct json_reader *r, size_t *len)
{
    return take_number(r, len);
}

/* Moves the digits one byte to the left, over a byte that was already read. That makes room for a NUL without
 * overwriting the byte after the number. */
const char *reader_lexeme(struct json_reader *r)
{
    size_t len;
    char *digits = take_number(r, &len);
    if (!digits || digits == r->start)
        return NULL;
    memmove(digits - 1, digits, len);
    digits[len - 1] = '\0';
    return digits - 1;
}

bool reader_number(struct json_reader *r, double *out)
{
    size_t len;
    const char *digits = take_number(r, &len);
    if (digits)
        *out = number_double(digits, len);
    return digits != NULL;
}

int64_t reader_count(struct json_reader *r)
{
    double value;
    if (!reader_number(r, &value) || !(value >= 0 && value < 9e15) || value != (double)(int64_t)value)
        return 0;
    return (int64_t)value;
}

/* Reads null, true or false. */
static const char *take_word(struct json_reader *r)
{
    static const char *const words[] = { "null", "true", "false" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (*r->at == *words[i] && strncmp(r->at, words[i], len) == 0) {
            r->at += len;
            return words[i];
        }
    }
    unexpected(r, "a value");
    return NULL;
}

static bool starts_non_word(char c)
{
    return c == '{' || c == '[' || c == '"' || starts_number(c);
}

const char *reader_word(struct json_reader *r)
{
    if (!starts_non_word(*r->at))
        return take_word(r);
    reader_skip(r);
    return NULL;
}

void reader_skip(struct json_reader *r)
{
    size_t len;
    if (*r->at == '{') {
        if (reader_object(r))
            while (reader_name(r))
                reader_skip(r);
    } else if (*r->at == '[') {
        if (reader_list(r))
            while (reader_item(r))
                reader_skip(r);
    } else if (*r->at == '"') {
        (void)take_string(r);
    } else if (starts_number(*r->at)) {
        (void)take_number(r, &len);
    } else {
        (void)take_word(r);
    }
}

bool reader_ended(struct json_reader *r)
{
    skip_space(r);
    if (r->fault == READER_OK && (r->depth > 0 || r->at < r->end))
        unexpected(r, NULL);
    return r->fault == READER_OK;
}

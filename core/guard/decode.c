/* Encoded text inside a text: base64, hexadecimal, binary and decimal codes of characters, Morse code. */
#include "core/guard/decode.h"

#include <stdint.h>
#include <string.h>

#include "core/base/utf8.h"

struct decoding {
    const char *text;
    size_t len;
    char *out;
    size_t out_len;
    struct arena *arena;
    struct decode_piece *pieces;
    size_t count, cap;
    size_t prose; /* 1 + the first piece that is prose */
};

/* The value of a base64 digit, in both alphabets, plus one; 0 for other bytes. */
static const uint8_t base64[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['-'] = 63,
    ['/'] = 64, ['_'] = 64,
};

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- is it text? ---- */

/* UTF-16 of ASCII has a NUL in every second place. */
static size_t without_nuls(char *bytes, size_t len)
{
    size_t kept = 0, nuls = 0;
    for (size_t i = 0; i < len; i++)
        nuls += !bytes[i];
    if (nuls < len / 3)
        return len;
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            bytes[kept++] = bytes[i];
    return kept;
}

static bool is_readable(const char *bytes, size_t len)
{
    if (len < 4 || utf8_check(bytes, len) < len)
        return false;
    size_t letters = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t'))
            return false;
        letters += c >= 0x80 || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == ' ' || is_digit((char)c);
    }
    return letters * 10 >= len * 7;
}

/* Words with spaces between them, or many letters beyond ASCII. */
static bool is_prose(const char *bytes, size_t len)
{
    size_t lower = 0, upper = 0, spaces = 0, beyond = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        lower += c >= 'a' && c <= 'z';
        upper += c >= 'A' && c <= 'Z';
        spaces += c == ' ' || c == '\n';
        beyond += c >= 0x80;
    }
    const size_t letters = lower + upper + beyond;
    const bool worded = spaces >= 2 && letters >= 3 * spaces && letters <= 12 * spaces;
    return len >= DECODE_PROSE_MIN && (worded || beyond >= 24) && (letters + spaces) * 10 >= len * 8 &&
           (lower + beyond >= upper || upper == letters);
}

/* Keeps the `made` bytes written at the end of the output if they can be read. */
static bool keep(struct decoding *d, size_t made, size_t start, size_t end)
{
    char *bytes = d->out + d->out_len;
    made = without_nuls(bytes, made);
    if (!is_readable(bytes, made))
        return false;
    if (d->count == d->cap) {
        struct decode_piece *more = arena_alloc(d->arena, 2 * (d->cap + 8) * sizeof *more);
        if (d->count)
            memcpy(more, d->pieces, d->count * sizeof *more);
        d->pieces = more;
        d->cap = 2 * (d->cap + 8);
    }
    d->pieces[d->count++] = (struct decode_piece){ d->out_len, start, end };
    if (!d->prose && is_prose(bytes, made))
        d->prose = d->count;
    bytes[made] = '\n';
    d->out_len += made + 1;
    return true;
}

/* ---- one long run ---- */

static bool keep_base64(struct decoding *d, size_t start, size_t end)
{
    uint8_t *out = (uint8_t *)d->out + d->out_len;
    uint32_t bits = 0;
    size_t count = 0, made = 0;
    for (size_t i = start; i < end; i++) {
        const uint8_t value = base64[(unsigned char)d->text[i]];
        if (!value) /* a line end */
            continue;
        bits = bits << 6 | (value - 1u);
        if (++count % 4 == 0) {
            out[made++] = (uint8_t)(bits >> 16);
            out[made++] = (uint8_t)(bits >> 8);
            out[made++] = (uint8_t)bits;
        }
    }
    if (count % 4 == 3) {
        out[made++] = (uint8_t)(bits >> 10);
        out[made++] = (uint8_t)(bits >> 2);
    } else if (count % 4 == 2) {
        out[made++] = (uint8_t)(bits >> 4);
    }
    return keep(d, made, start, end);
}

/* Digits of a base, `width` of them for a byte. */
static bool keep_digits(struct decoding *d, size_t start, size_t end, int base, size_t width)
{
    size_t made = 0;
    for (size_t i = start; i + width <= end; i += width) {
        unsigned value = 0;
        for (size_t j = 0; j < width; j++)
            value = value * (unsigned)base + (unsigned)hex_digit(d->text[i + j]);
        d->out[d->out_len + made++] = (char)value;
    }
    return keep(d, made, start, end);
}

/* Wrapped base64 goes on in the next line. */
static size_t end_of_run(const struct decoding *d, size_t start, size_t *digits)
{
    enum { WRAPPED_MIN = 40 };
    size_t at = start, line = start;
    *digits = 0;
    for (;;) {
        while (at < d->len && base64[(unsigned char)d->text[at]])
            at++;
        *digits += at - line;
        size_t next = at;
        if (at - line >= WRAPPED_MIN)
            next += next < d->len && d->text[next] == '\r';
        if (at - line < WRAPPED_MIN || next + 1 >= d->len || d->text[next] != '\n' ||
            !base64[(unsigned char)d->text[next + 1]])
            return at;
        at = line = next + 1;
    }
}

static bool take_run(struct decoding *d, size_t start, size_t end, size_t digits)
{
    size_t hex = 0, binary = 0, body = start;
    if (end - start > 2 && d->text[start] == '0' && (d->text[start + 1] | 32) == 'x')
        body += 2;
    for (size_t i = body; i < end; i++) {
        hex += hex_digit(d->text[i]) >= 0;
        binary += d->text[i] == '0' || d->text[i] == '1';
    }
    if (binary == end - body && binary >= DECODE_BINARY_MIN && keep_digits(d, body, end, 2, 8))
        return true;
    if (hex == end - body && hex >= DECODE_HEX_MIN && keep_digits(d, body, end, 16, 2))
        return true;
    return digits >= DECODE_BASE64_MIN && keep_base64(d, start, end);
}

/* ---- groups of digits ---- */

static bool is_gap(char c)
{
    return c == ' ' || c == ',' || c == ';' || c == ':' || c == '-' || c == '\n' || c == '/' || c == '|';
}

/* Reads a group at `at`: its base follows from its length, or is given. Returns its end, or `at`. */
static size_t read_group(const struct decoding *d, size_t at, int base, unsigned *value)
{
    const size_t width = base == 2 ? 8 : base == 16 ? 2 : 3;
    size_t i = at;
    if (base == 16 && d->len - at > 3 && d->text[at] == '0' && (d->text[at + 1] | 32) == 'x')
        i += 2;
    const size_t first = i;
    *value = 0;
    for (; i < d->len && i - first < width; i++) {
        const int digit = hex_digit(d->text[i]);
        if (digit < 0 || digit >= base)
            break;
        *value = *value * (unsigned)base + (unsigned)digit;
    }
    const bool whole = base == 10 ? i - first >= 2 : i - first == width;
    const bool ends = i == d->len || hex_digit(d->text[i]) < 0;
    return whole && ends && *value < 256 ? i : at;
}

/* Decodes the groups from `start` on in one base; returns the end of the last, `*kept` if they are text. */
static size_t take_base(struct decoding *d, size_t start, int base, bool *kept)
{
    size_t at = start, end = start, made = 0;
    unsigned value;
    for (;;) {
        const size_t next = read_group(d, at, base, &value);
        if (next == at)
            break;
        d->out[d->out_len + made++] = (char)value;
        end = at = next;
        while (at < d->len && at - end < 2 && is_gap(d->text[at]))
            at++;
        if (at == end)
            break;
    }
    *kept = made >= DECODE_GROUPS_MIN && keep(d, made, start, end);
    return end;
}

/* "69", "105", "0x69" and "01101001" */
static bool may_be_group(size_t len)
{
    return (len >= 2 && len <= 4) || len == 8;
}

/* Returns the end of what was looked at; `start` if no groups begin there. */
static size_t take_groups(struct decoding *d, size_t start)
{
    static const int bases[] = { 2, 16, 10 };
    size_t furthest = start;
    if (hex_digit(d->text[start]) < 0)
        return start;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        bool kept;
        const size_t end = take_base(d, start, bases[i], &kept);
        if (kept)
            return end;
        furthest = end > furthest ? end : furthest;
    }
    return furthest;
}

/* ---- Morse code ---- */

static const char *const morse[] = {
    ".-", "-...", "-.-.", "-..",  ".",   "..-.", "--.", "....", "..",   ".---", "-.-",  ".-..", "--",
    "-.", "---",  ".--.", "--.-", ".-.", "...",  "-",   "..-",  "...-", ".--",  "-..-", "-.--", "--..",
};

static char morse_letter(const char *sign, size_t len)
{
    for (size_t i = 0; i < sizeof morse / sizeof *morse; i++)
        if (strlen(morse[i]) == len && memcmp(morse[i], sign, len) == 0)
            return (char)('a' + i);
    return 0;
}

/* Returns the end of what was looked at. */
static size_t take_morse(struct decoding *d, size_t start)
{
    enum { LETTERS_MIN = 8, SIGN_MAX = 4 };
    size_t at = start, end = start, made = 0, letters = 0;
    while (at < d->len) {
        size_t sign = at;
        while (sign < d->len && sign - at <= SIGN_MAX && (d->text[sign] == '.' || d->text[sign] == '-'))
            sign++;
        const char letter = sign > at && sign - at <= SIGN_MAX ? morse_letter(d->text + at, sign - at) : 0;
        if (!letter)
            break;
        d->out[d->out_len + made++] = letter;
        letters++;
        end = at = sign;
        while (at < d->len && at - end < 3 && (d->text[at] == ' ' || d->text[at] == '/'))
            at++;
        if (at - end > 1)
            d->out[d->out_len + made++] = ' ';
        if (at == end)
            break;
    }
    if (letters >= LETTERS_MIN && memchr(d->text + start, '.', end - start) &&
        memchr(d->text + start, '-', end - start))
        keep(d, made, start, end);
    return end > start ? end : start + 1;
}

/* ---- the scan ---- */

void decode_runs(struct arena *arena, const char *text, size_t len, struct decoded *out)
{
    struct decoding d = { .text = text, .len = len, .arena = arena };
    d.out = arena_alloc(arena, len + 8);
    size_t at = 0;
    while (at < len) {
        if ((text[at] == '.' || text[at] == '-') && at + 1 < len &&
            (text[at + 1] == '.' || text[at + 1] == '-' || text[at + 1] == ' ')) {
            at = take_morse(&d, at);
            continue;
        }
        if (!base64[(unsigned char)text[at]]) {
            at++;
            continue;
        }
        size_t digits;
        const size_t end = end_of_run(&d, at, &digits);
        size_t groups = at;
        if (end - at >= DECODE_BASE64_MIN ? !take_run(&d, at, end, digits) : may_be_group(end - at))
            groups = take_groups(&d, at);
        at = groups > end ? groups : end;
    }
    *out = (struct decoded){ d.out, d.out_len, d.pieces, d.count, d.prose ? d.pieces + d.prose - 1 : NULL };
}

const struct decode_piece *decode_piece_of(const struct decoded *d, size_t at)
{
    size_t low = 0, high = d->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (d->pieces[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return d->pieces + low;
}

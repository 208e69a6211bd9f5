/* Folding: a text as its reader takes it, without what Unicode and escapes can hide. */
#include "core/guard/fold.h"

#include <string.h>

#include "core/base/utf8.h"

struct fold_row {
    const char *to; /* "": the character stays */
    bool form;      /* `to` is the same character in another form */
    char like;      /* the Latin letter that it looks like, or 0 */
};
#include "core/guard/fold.gen.h"

enum {
    WORD_LOOK = 64,    /* characters of a word that are searched for another script */
    HIDDEN_INSIDE = 3, /* zero widths inside Latin words */
    HIDDEN_RUN = 6,    /* zero widths, or 4 selectors, in a row */
    HIDDEN_SELECTORS = 4,
    HIDDEN_MANY = 12, /* zero widths in a text where ... */
    HIDDEN_SHARE = 8, /* ... every so many bytes hold one */
};

const char *const fold_disguise_names[FOLD_DISGUISES + 1] = {
    "forms",   "lookalikes", "invisible", "direction", "marks",
    "escapes", "leetspeak",  "spaced",    "encoded",   NULL,
};

struct folding {
    const char *text;
    size_t len, at;
    char *out;
    size_t out_len;
    struct fold_run *runs;
    size_t run_count, run_cap;
    struct arena *arena;
    size_t distance;   /* of the current run */
    size_t word_until; /* up to here it is decided whether look-alikes are folded */
    bool word_mixed;
    unsigned disguises;
    size_t zero_widths, inside_words, in_a_row, selectors; /* the last two: in the current row */
    size_t flag_until;    /* end of a flag that is spelled in tag characters */
    bool hidden, spelled; /* spelled: the last character was a tag */
    size_t hidden_start, hidden_end;
};

static const struct fold_row *row_of(uint32_t c)
{
    return c > FOLD_LAST ? fold_rows : &fold_rows[fold_cell[fold_block[c >> 6]][c & 63]];
}

char fold_lookalike(uint32_t c)
{
    return row_of(c)->like;
}

/* ---- output ---- */

/* The next byte of the output stands for the character at `from`. */
static void mark_origin(struct folding *f, size_t from)
{
    if (from - f->out_len == f->distance)
        return;
    if (f->run_count == f->run_cap) {
        struct fold_run *more = arena_alloc(f->arena, 2 * f->run_cap * sizeof *more);
        memcpy(more, f->runs, f->run_count * sizeof *more);
        f->runs = more;
        f->run_cap *= 2;
    }
    f->distance = from - f->out_len;
    f->runs[f->run_count++] = (struct fold_run){ (uint32_t)f->out_len, (uint32_t)from };
}

static void put_bytes(struct folding *f, size_t from, const char *bytes, size_t len)
{
    mark_origin(f, from);
    memcpy(f->out + f->out_len, bytes, len);
    f->out_len += len;
}

static void put_char(struct folding *f, size_t from, char c)
{
    put_bytes(f, from, &c, 1);
}

static void put_character(struct folding *f, size_t from, uint32_t c)
{
    char bytes[4];
    size_t len = 1;
    if (c < 0x80) {
        bytes[0] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c ? (char)c : ' ';
    } else if (c < 0x800) {
        bytes[0] = (char)(0xc0 | c >> 6);
        len = 2;
    } else if (c < 0x10000) {
        bytes[0] = (char)(0xe0 | c >> 12);
        len = 3;
    } else {
        bytes[0] = (char)(0xf0 | c >> 18);
        len = 4;
    }
    for (size_t i = 1; i < len; i++)
        bytes[i] = (char)(0x80 | (c >> 6 * (len - 1 - i) & 0x3f));
    put_bytes(f, from, bytes, len);
}

/* ---- escapes ---- */

static const struct {
    const char *name;
    uint32_t character;
} entities[] = {
    { "amp;", '&' },    { "lt;", '<' },     { "gt;", '>' },      { "quot;", '"' },     { "apos;", '\'' },
    { "nbsp;", ' ' },   { "shy;", 0xad },   { "zwnj;", 0x200c }, { "zwj;", 0x200d },   { "lrm;", 0x200e },
    { "rlm;", 0x200f }, { "lbrack;", '[' }, { "rbrack;", ']' },  { "lbrace;", '{' },   { "rbrace;", '}' },
    { "sol;", '/' },    { "vert;", '|' },   { "colon;", ':' },   { "newline;", '\n' }, { "tab;", '\t' },
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Reads up to `most` digits of a character's number; returns how many there are. */
static size_t read_number(const char *text, size_t left, int base, size_t most, uint32_t *value)
{
    size_t n = 0;
    *value = 0;
    for (; n < most && n < left; n++) {
        const int digit = hex_of(text[n]);
        if (digit < 0 || digit >= base)
            break;
        *value = *value * (uint32_t)base + (uint32_t)digit;
    }
    return n;
}

static bool is_character(uint32_t c)
{
    return c < 0xd800 || (c > 0xdfff && c < 0x110000);
}

/* The functions below return the length of the escape at `text` and set its character, or return 0. */

static size_t read_entity(const char *text, size_t left, uint32_t *c)
{
    if (left > 3 && text[1] == '#') {
        const bool is_hex = (text[2] | 32) == 'x';
        const size_t head = is_hex ? 3 : 2, n = read_number(text + head, left - head, is_hex ? 16 : 10, 7, c);
        if (n == 0 || !is_character(*c))
            return 0;
        return head + n + (head + n < left && text[head + n] == ';');
    }
    if (left < 3 || !is_letter(text[1]))
        return 0;
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        const size_t len = strlen(entities[i].name);
        if (len < left && strncasecmp(text + 1, entities[i].name, len) == 0) {
            *c = entities[i].character;
            return len + 1;
        }
    }
    return 0;
}

static size_t read_percent(const char *text, size_t left, uint32_t *c)
{
    char bytes[4];
    size_t n = 0;
    uint32_t value;
    while (n < 4 && 3 * n + 2 < left && text[3 * n] == '%' &&
           read_number(text + 3 * n + 1, 2, 16, 2, &value) == 2) {
        bytes[n++] = (char)value;
        if (utf8_check(bytes, n) == n) {
            const char *at = bytes;
            *c = utf8_next(&at);
            return 3 * n;
        }
    }
    return 0;
}

static size_t read_u(const char *text, size_t left, uint32_t *c)
{
    size_t n;
    if (left > 4 && text[2] == '{') {
        n = read_number(text + 3, left - 3, 16, 6, c);
        return n && 3 + n < left && text[3 + n] == '}' && is_character(*c) ? 4 + n : 0;
    }
    const size_t digits = text[1] == 'U' ? 8 : 4;
    if (read_number(text + 2, left - 2, 16, digits, c) != digits)
        return 0;
    n = 2 + digits;
    uint32_t low;
    if (*c >= 0xd800 && *c < 0xdc00 && left >= n + 6 && text[n] == '\\' && text[n + 1] == 'u' &&
        read_number(text + n + 2, 4, 16, 4, &low) == 4 && low >= 0xdc00 && low < 0xe000) {
        *c = 0x10000 + ((*c & 0x3ff) << 10) + (low & 0x3ff);
        return n + 6;
    }
    return is_character(*c) ? n : 0;
}

static size_t read_backslash(const char *text, size_t left, uint32_t *c)
{
    if (left < 2)
        return 0;
    if ((text[1] == 'u' || text[1] == 'U') && left >= 6)
        return read_u(text, left, c);
    if (text[1] == 'x' && left >= 4 && read_number(text + 2, 2, 16, 2, c) == 2)
        return 4;
    if (text[1] == 'n' || text[1] == 'r' || text[1] == 't') {
        *c = text[1] == 'n' ? '\n' : ' ';
        return 2;
    }
    return 0;
}

static size_t read_escape(const char *text, size_t left, uint32_t *c)
{
    return text[0] == '&'   ? read_entity(text, left, c)
           : text[0] == '%' ? read_percent(text, left, c)
                            : read_backslash(text, left, c);
}

/* "&amp;lt;" and "%2569" are escaped twice: the first escape stands for the start of the second. */
static size_t read_escapes(const char *text, size_t left, uint32_t *c)
{
    static const struct {
        const char *outer;
        char inner;
    } twice[] = { { "&amp;", '&' }, { "%25", '%' }, { "\\\\", '\\' } };
    const size_t len = read_escape(text, left, c);
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        const size_t outer = strlen(twice[i].outer);
        if (left <= outer || strncasecmp(text, twice[i].outer, outer) != 0)
            continue;
        char inner[16] = { twice[i].inner };
        const size_t most = left - outer < sizeof inner - 1 ? left - outer : sizeof inner - 1;
        memcpy(inner + 1, text + outer, most);
        const size_t more = read_escape(inner, most + 1, c);
        if (more)
            return outer + more - 1;
    }
    return len;
}

/* "5%20" may be text; "a%20b" and "%5c%20" are not. */
static bool may_escape(const struct folding *f)
{
    const char *t = f->text + f->at;
    if (*t != '%')
        return true;
    return f->at == 0 || t[-1] < '0' || t[-1] > '9' || (f->len - f->at > 3 && t[3] == '%') ||
           (f->at >= 3 && t[-3] == '%');
}

/* ---- invisible characters ---- */

static bool is_zero_width(uint32_t c)
{
    return (c >= 0x200b && c <= 0x200f) || c == 0x61c || (c >= 0x2060 && c <= 0x2064) ||
           (c >= 0x206a && c <= 0x206f) || c == 0xfeff || c == 0x180e || c == 0x34f || c == 0x115f ||
           c == 0x1160 || c == 0x17b4 || c == 0x17b5 || c == 0x3164 || c == 0xffa0 ||
           (c >= 0x1d173 && c <= 0x1d17a) || (c >= 0xfff9 && c <= 0xfffb);
}

static bool is_direction(uint32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool is_selector(uint32_t c)
{
    return (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0100 && c <= 0xe01ef) || (c >= 0x180b && c <= 0x180d);
}

static bool is_tag(uint32_t c)
{
    return c >= 0xe0000 && c <= 0xe007f;
}

static bool is_mark(uint32_t c)
{
    return (c >= 0x300 && c <= 0x36f) || (c >= 0x483 && c <= 0x489) ||
           (c >= 0x591 && c <= 0x5c7 && c != 0x5be) || (c >= 0x610 && c <= 0x61a) || c == 0x640 ||
           (c >= 0x64b && c <= 0x65f) || c == 0x670 || (c >= 0x1ab0 && c <= 0x1aff) ||
           (c >= 0x1dc0 && c <= 0x1dff) || (c >= 0x20d0 && c <= 0x20ff) || (c >= 0x3099 && c <= 0x309a) ||
           (c >= 0xfe20 && c <= 0xfe2f);
}

static void see_hidden(struct folding *f, size_t from, size_t to)
{
    if (f->hidden_end == 0)
        f->hidden_start = from;
    f->hidden_end = to;
}

static void take_zero_width(struct folding *f, size_t from, size_t to)
{
    f->disguises |= FOLD_INVISIBLE;
    if (from == 0) /* a byte order mark */
        return;
    f->zero_widths++;
    f->in_a_row++;
    const bool between = is_letter(f->text[from - 1]) && to < f->len && is_letter(f->text[to]);
    f->inside_words += between;
    f->hidden |= f->in_a_row >= HIDDEN_RUN || f->inside_words >= HIDDEN_INSIDE;
    see_hidden(f, from, to);
}

/* A row of selectors spells bytes. */
static void take_selector(struct folding *f, uint32_t c, size_t from, size_t to)
{
    if (++f->selectors < HIDDEN_SELECTORS)
        return;
    f->disguises |= FOLD_INVISIBLE;
    f->hidden = true;
    see_hidden(f, from, to);
    const uint32_t byte = c >= 0xe0100 ? c - 0xe0100 + 16 : c - 0xfe00;
    if (c >= 0xe0100 && byte < 0x7f)
        put_character(f, from, byte);
}

/* The flags of England, Scotland and Wales are spelled in tag characters after a black flag. */
static void take_tag(struct folding *f, uint32_t c, size_t from, size_t to)
{
    enum { BLACK_FLAG_BYTES = 4, FLAG_BYTES = 6 * 4 };
    if (from >= BLACK_FLAG_BYTES &&
        memcmp(f->text + from - BLACK_FLAG_BYTES, "\xf0\x9f\x8f\xb4", BLACK_FLAG_BYTES) == 0)
        f->flag_until = from + FLAG_BYTES;
    if (from < f->flag_until)
        return;
    f->disguises |= FOLD_INVISIBLE;
    f->hidden = true;
    see_hidden(f, from, to);
    if (c < 0xe0020 || c == 0xe007f)
        return;
    if (!f->spelled)
        put_char(f, from, ' ');
    put_character(f, from, c - 0xe0000);
    f->spelled = true;
}

/* Whether the character shows nothing; it is then taken care of. */
static bool take_invisible(struct folding *f, uint32_t c, size_t from, size_t to)
{
    if (is_tag(c)) {
        take_tag(f, c, from, to);
    } else if (is_selector(c)) {
        take_selector(f, c, from, to);
    } else if (is_zero_width(c)) {
        take_zero_width(f, from, to);
    } else if (is_direction(c)) {
        f->disguises |= FOLD_DIRECTION;
        see_hidden(f, from, to);
        f->hidden |= c == 0x202d || c == 0x202e; /* an override: the text reads in another order */
    } else if (c == 0xad) {
        f->disguises |= FOLD_INVISIBLE;
    } else if (is_mark(c)) {
        f->disguises |= FOLD_MARKS;
    } else {
        return false;
    }
    return true;
}

/* ---- letters of other scripts ---- */

static bool is_separator(uint32_t c)
{
    return c < 0x80 ? !is_letter((char)c) && !(c >= '0' && c <= '9')
                    : utf8_is_space(c) || (c >= 0x2010 && c <= 0x2bff) || c == 0x3000;
}

static unsigned script_of(uint32_t c)
{
    return c < 0x400 || (c >= 0x1f00 && c < 0x2000) ? 1 : c < 0x530 ? 2 : c < 0x590 ? 4 : 8;
}

/* Whether the word around `from` mixes look-alikes with Latin letters or with those of a third script. */
static void decide_word(struct folding *f, size_t from)
{
    bool latin = f->out_len > 0 && is_letter(f->out[f->out_len - 1]);
    unsigned scripts = 0;
    const char *at = f->text + from, *end = f->text + f->len;
    for (int i = 0; i < WORD_LOOK && at < end; i++) {
        const uint32_t c = utf8_next(&at);
        const struct fold_row *row = row_of(c);
        if (is_separator(c))
            break;
        latin |= c < 0x80 ? is_letter((char)c) : !row->like && is_letter(row->to[0]);
        if (row->like)
            scripts |= script_of(c);
    }
    f->word_until = (size_t)(at - f->text);
    f->word_mixed = scripts && (latin || (scripts & (scripts - 1)));
}

static void take_letter(struct folding *f, uint32_t c, size_t from)
{
    const struct fold_row *row = row_of(c);
    if (row->like) {
        if (from >= f->word_until)
            decide_word(f, from);
        if (f->word_mixed) {
            f->disguises |= FOLD_LOOKALIKES;
            put_char(f, from, row->like);
            return;
        }
    }
    if (!row->to[0]) {
        put_character(f, from, c);
        return;
    }
    if (row->form)
        f->disguises |= FOLD_FORMS;
    put_bytes(f, from, row->to, strlen(row->to));
}

/* Mathematical letters and digits, and full-width ASCII, stand in the order of ASCII. 0: another character.
 */
static char computed_form(uint32_t c)
{
    if (c >= 0xff01 && c <= 0xff5e)
        return (char)(c - 0xff01 + '!');
    if (c >= 0x1d400 && c <= 0x1d6a3)
        return (char)('a' + (c - 0x1d400) % 26);
    if (c >= 0x1d7ce && c <= 0x1d7ff)
        return (char)('0' + (c - 0x1d7ce) % 10);
    return 0;
}

static void take_character(struct folding *f, uint32_t c, size_t from, size_t to)
{
    if (c >= 0x80 && take_invisible(f, c, from, to))
        return;
    f->in_a_row = f->selectors = 0;
    f->spelled = false;
    const char form = c >= 0x80 ? computed_form(c) : 0;
    if (c < 0x80) {
        put_character(f, from, c);
    } else if (form && !row_of(c)->to[0]) {
        f->disguises |= FOLD_FORMS;
        put_character(f, from, (uint32_t)form);
    } else {
        take_letter(f, c, from);
    }
}

/* ---- the loop ---- */

static void take_escape(struct folding *f)
{
    uint32_t c = 0;
    const size_t from = f->at, len = may_escape(f) ? read_escapes(f->text + from, f->len - from, &c) : 0;
    if (len == 0) {
        put_char(f, from, f->text[from]);
        f->at++;
        return;
    }
    if (f->text[from] != '\\' || len > 2) /* "\n" is no disguise */
        f->disguises |= FOLD_ESCAPES;
    f->at += len;
    take_character(f, c, from, f->at);
}

/* ASCII that starts no escape, in lower case; 0 for all others. */
static const char plain[256] = {
    ['\t'] = '\t', ['\n'] = '\n', ['\r'] = '\r', [' '] = ' ', ['!'] = '!', ['"'] = '"', ['#'] = '#',
    ['$'] = '$',   ['\''] = '\'', ['('] = '(',   [')'] = ')', ['*'] = '*', ['+'] = '+', [','] = ',',
    ['-'] = '-',   ['.'] = '.',   ['/'] = '/',   ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3',
    ['4'] = '4',   ['5'] = '5',   ['6'] = '6',   ['7'] = '7', ['8'] = '8', ['9'] = '9', [':'] = ':',
    [';'] = ';',   ['<'] = '<',   ['='] = '=',   ['>'] = '>', ['?'] = '?', ['@'] = '@', ['A'] = 'a',
    ['B'] = 'b',   ['C'] = 'c',   ['D'] = 'd',   ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h',
    ['I'] = 'i',   ['J'] = 'j',   ['K'] = 'k',   ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o',
    ['P'] = 'p',   ['Q'] = 'q',   ['R'] = 'r',   ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v',
    ['W'] = 'w',   ['X'] = 'x',   ['Y'] = 'y',   ['Z'] = 'z', ['['] = '[', [']'] = ']', ['^'] = '^',
    ['_'] = '_',   ['`'] = '`',   ['a'] = 'a',   ['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e',
    ['f'] = 'f',   ['g'] = 'g',   ['h'] = 'h',   ['i'] = 'i', ['j'] = 'j', ['k'] = 'k', ['l'] = 'l',
    ['m'] = 'm',   ['n'] = 'n',   ['o'] = 'o',   ['p'] = 'p', ['q'] = 'q', ['r'] = 'r', ['s'] = 's',
    ['t'] = 't',   ['u'] = 'u',   ['v'] = 'v',   ['w'] = 'w', ['x'] = 'x', ['y'] = 'y', ['z'] = 'z',
    ['{'] = '{',   ['|'] = '|',   ['}'] = '}',   ['~'] = '~',
};

static void take_plain(struct folding *f)
{
    const unsigned char *text = (const unsigned char *)f->text;
    mark_origin(f, f->at);
    size_t at = f->at;
    char c, *out = f->out + f->out_len;
    while (at < f->len && (c = plain[text[at]])) {
        *out++ = c;
        at++;
    }
    f->out_len += at - f->at;
    f->at = at;
    f->in_a_row = f->selectors = 0;
    f->spelled = false;
}

void fold_text(struct arena *arena, const char *text, size_t len, struct folded *out)
{
    enum { FIRST_RUNS = 64 };
    struct folding f = {
        .text = text, .len = len, .arena = arena, .run_cap = FIRST_RUNS, .distance = SIZE_MAX
    };
    f.out = arena_alloc(arena, len + 1);
    f.runs = arena_alloc(arena, FIRST_RUNS * sizeof *f.runs);
    while (f.at < len) {
        const unsigned char c = (unsigned char)text[f.at];
        if (plain[c]) {
            take_plain(&f);
        } else if (c == '&' || c == '%' || c == '\\') {
            take_escape(&f);
        } else {
            const size_t from = f.at;
            const char *at = text + from;
            const uint32_t character = utf8_next(&at);
            f.at = (size_t)(at - text);
            take_character(&f, character, from, f.at);
        }
    }
    f.hidden |= f.zero_widths >= HIDDEN_MANY && f.zero_widths * HIDDEN_SHARE >= len;
    f.out[f.out_len] = '\0';
    *out = (struct folded){ f.out,    f.out_len,      len,         f.runs, f.run_count, f.disguises,
                            f.hidden, f.hidden_start, f.hidden_end };
}

size_t fold_origin(const struct folded *f, size_t at)
{
    if (at >= f->len)
        return f->original_len;
    size_t low = 0, high = f->run_count; /* the run is in [low, high) */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (f->runs[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    const size_t origin = f->runs[low].from + (at - f->runs[low].at);
    const size_t limit = low + 1 < f->run_count ? f->runs[low + 1].from : f->original_len;
    return origin < limit ? origin : limit;
}

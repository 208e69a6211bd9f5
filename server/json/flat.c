/* Lists of flat objects, read in place. A reader that finds a fault stays before it and says no to
 * everything. */
#include "server/json/flat.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void skip_space(struct flat *f)
{
    while (*f->at == ' ' || *f->at == '\n' || *f->at == '\t' || *f->at == '\r')
        f->at++;
}

static bool take(struct flat *f, char c)
{
    skip_space(f);
    if (*f->at != c)
        return false;
    f->at++;
    return true;
}

struct flat flat_begin(char *text)
{
    struct flat f = { .at = text };
    f.ended = take(&f, '[') && take(&f, ']');
    skip_space(&f);
    return f;
}

bool flat_object(struct flat *f)
{
    if (f->ended || f->inside || !take(f, '{'))
        return false;
    f->inside = true;
    return true;
}

bool flat_ended(const struct flat *f)
{
    return f->ended && *f->at == '\0';
}

/* ---- texts ---- */

/* The four hexadecimal digits, or -1. */
static int32_t hex4(const char *at)
{
    static const char digits[] = "0123456789abcdef";
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit)
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

/* Behind "\u": the character, of both halves of a pair, or -1. */
static int32_t take_unit(char **from)
{
    int32_t unit = hex4(*from);
    if (unit < 0)
        return -1;
    *from += 4;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    int32_t low = (*from)[0] == '\\' && (*from)[1] == 'u' ? hex4(*from + 2) : -1;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return -1;
    *from += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/* Behind the backslash: the character that it stands for, or -1; never NUL, which would end the text. */
static int32_t take_escape(char **from)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char c = *(*from)++;
    if (c == 'u') {
        int32_t unit = take_unit(from);
        return unit == 0 ? -1 : unit;
    }
    const char *name = c ? strchr(names, c) : NULL;
    return name ? means[name - names] : -1;
}

static const bool ends_run[256] = { ['\0'] = true, ['"'] = true, ['\\'] = true };

/* At the opening quote. What is unescaped is never longer than what it stood for. */
static const char *take_text(struct flat *f)
{
    if (*f->at != '"')
        return NULL;
    char *start = f->at + 1, *from = start;
    while (!ends_run[(unsigned char)*from])
        from++;
    char *to = from; /* most texts have no escape, and stay where they are */
    while (*from && *from != '"') {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        int32_t c = take_escape(&from);
        if (c < 0)
            return NULL;
        to = put_utf8(to, c);
    }
    if (*from != '"')
        return NULL;
    *to = '\0';
    f->at = from + 1;
    return start;
}

/* ---- members ---- */

/* The value; `end` is where a NUL must go once what follows the value is known. */
static bool take_value(struct flat *f, struct flat_member *out, char **end)
{
    static const struct {
        const char *word;
        size_t len;
        enum flat_kind kind;
    } words[] = { { "null", 4, FLAT_NULL }, { "true", 4, FLAT_BOOL }, { "false", 5, FLAT_BOOL } };
    skip_space(f);
    *end = NULL;
    if (*f->at == '"') {
        out->kind = FLAT_TEXT;
        return (out->text = take_text(f)) != NULL;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(f->at, words[i].word, words[i].len) == 0) {
            *out = (struct flat_member){ out->name, words[i].kind, NULL };
            f->at += words[i].len;
            return true;
        }
    size_t len = strspn(f->at, "0123456789+-.eE");
    *out = (struct flat_member){ out->name, FLAT_NUMBER, f->at };
    f->at += len;
    *end = f->at;
    return len > 0;
}

/* Behind the last member: another object must follow, or the end of the list. */
static bool leave(struct flat *f)
{
    f->inside = take(f, ',') ? false : !take(f, ']');
    f->ended = !f->inside && f->at[-1] == ']';
    skip_space(f);
    return !f->inside;
}

bool flat_member(struct flat *f, struct flat_member *out)
{
    char *end;
    if (!f->inside || f->ended)
        return false;
    skip_space(f);
    if (!(out->name = take_text(f)) || !take(f, ':') || !take_value(f, out, &end))
        return false;
    bool more = take(f, ',');
    if (!more && !(take(f, '}') && leave(f)))
        return false;
    if (end)
        *end = '\0';
    return true;
}

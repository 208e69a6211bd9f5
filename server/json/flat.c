/* Lists of flat objects, read in place. A reader that finds a fault stays before it and says no to
 * everything. */
#include "server/json/flat.h"

#include <string.h>

#include "server/json/unescape.h"

static void skip_space(struct flat *f)
{
    while (*f->at <= ' ' && (*f->at == ' ' || *f->at == '\n' || *f->at == '\t' || *f->at == '\r'))
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

static const char *take_text(struct flat *f)
{
    return unescape(f->at, &f->at);
}

/* ---- members ---- */

static const bool of_number[256] = { ['0' ... '9'] = true, ['+'] = true, ['-'] = true,
                                     ['.'] = true,         ['e'] = true, ['E'] = true };

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
        if (*f->at == *words[i].word && strncmp(f->at, words[i].word, words[i].len) == 0) {
            *out = (struct flat_member){ out->name, words[i].kind,
                                         words[i].kind == FLAT_BOOL ? words[i].word : NULL };
            f->at += words[i].len;
            return true;
        }
    *out = (struct flat_member){ out->name, FLAT_NUMBER, f->at };
    while (of_number[(unsigned char)*f->at])
        f->at++;
    *end = f->at;
    return f->at > out->text;
}

/* Behind the last member: another object must follow, or the end of the list. */
static bool leave(struct flat *f)
{
    f->inside = take(f, ',') ? false : !take(f, ']');
    f->ended = !f->inside && f->at[-1] == ']';
    skip_space(f);
    return !f->inside;
}

static const char *take_name(struct flat *f, const char *guess, size_t len)
{
    if (!guess || *f->at != '"' || strncmp(f->at + 1, guess, len) != 0 || f->at[1 + len] != '"')
        return take_text(f);
    f->at += len + 2;
    return guess;
}

bool flat_member(struct flat *f, const char *guess, size_t len, struct flat_member *out)
{
    char *end;
    if (!f->inside || f->ended)
        return false;
    skip_space(f);
    if (!(out->name = take_name(f, guess, len)) || !take(f, ':') || !take_value(f, out, &end))
        return false;
    bool more = take(f, ',');
    if (!more && !(take(f, '}') && leave(f)))
        return false;
    if (end)
        *end = '\0';
    return true;
}

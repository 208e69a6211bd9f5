/* Documents of other servers, read in place. A reader that finds a fault says no to everything. */
#include "server/json/foreign.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "server/json/unescape.h"

enum { DEPTH_MOST = 64 };

static void skip_space(struct foreign *f)
{
    while (*f->at == ' ' || *f->at == '\n' || *f->at == '\t' || *f->at == '\r')
        f->at++;
}

static void fail(struct foreign *f)
{
    f->bad = true;
}

struct foreign foreign_begin(char *text, size_t len)
{
    struct foreign f = { .at = text, .end = text + len };
    f.bad = memchr(text, '\0', len) || utf8_check(text, len) != len;
    if (!f.bad)
        skip_space(&f);
    return f;
}

char foreign_peek(const struct foreign *f)
{
    return f->bad ? '\0' : *f->at;
}

static bool enter(struct foreign *f, char bracket)
{
    if (f->bad)
        return false;
    if (*f->at != bracket) {
        foreign_skip(f);
        return false;
    }
    if (++f->depth > DEPTH_MOST) {
        fail(f);
        return false;
    }
    f->at++;
    f->first = true;
    return true;
}

bool foreign_object(struct foreign *f)
{
    return enter(f, '{');
}

bool foreign_list(struct foreign *f)
{
    return enter(f, '[');
}

/* Before a member or an item: false at the end, which is taken, and at a fault. */
static bool more(struct foreign *f, char bracket)
{
    if (f->bad)
        return false;
    skip_space(f);
    bool first = f->first;
    f->first = false;
    if (*f->at == bracket) {
        f->at++;
        f->depth--;
        skip_space(f);
        return false;
    }
    if (!first && *f->at++ != ',') {
        fail(f);
        return false;
    }
    skip_space(f);
    return true;
}

static const char *take_text(struct foreign *f)
{
    const char *text = unescape(f->at, &f->at);
    if (!text)
        fail(f);
    return text;
}

const char *foreign_name(struct foreign *f)
{
    if (!more(f, '}'))
        return NULL;
    const char *name = take_text(f);
    if (!name)
        return NULL;
    skip_space(f);
    if (*f->at++ != ':') {
        fail(f);
        return NULL;
    }
    skip_space(f);
    return name;
}

bool foreign_item(struct foreign *f)
{
    return more(f, ']');
}

const char *foreign_text(struct foreign *f)
{
    if (f->bad || *f->at != '"') {
        foreign_skip(f);
        return NULL;
    }
    return take_text(f);
}

/* strtod knows more spellings than JSON: infinities, hexadecimal. */
static bool is_number(const char *at)
{
    at += *at == '-';
    return isdigit((unsigned char)at[0]) && !(at[0] == '0' && (at[1] == 'x' || at[1] == 'X'));
}

bool foreign_number(struct foreign *f, double *out)
{
    if (f->bad || !is_number(f->at)) {
        foreign_skip(f);
        return false;
    }
    *out = strtod(f->at, &f->at);
    return true;
}

int64_t foreign_count(struct foreign *f)
{
    double value;
    if (!foreign_number(f, &value) || !(value >= 0 && value < 9e15) || value != (double)(int64_t)value)
        return 0;
    return (int64_t)value;
}

static void skip_word(struct foreign *f)
{
    static const char *const words[] = { "null", "true", "false" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(f->at, words[i], len) == 0) {
            f->at += len;
            return;
        }
    }
    fail(f);
}

void foreign_skip(struct foreign *f)
{
    double ignored;
    if (f->bad)
        return;
    if (*f->at == '{' && foreign_object(f)) {
        while (foreign_name(f))
            foreign_skip(f);
    } else if (*f->at == '[' && foreign_list(f)) {
        while (foreign_item(f))
            foreign_skip(f);
    } else if (*f->at == '"') {
        take_text(f);
    } else if (is_number(f->at)) {
        foreign_number(f, &ignored);
    } else {
        skip_word(f);
    }
}

bool foreign_ended(const struct foreign *f)
{
    const char *at = f->at;
    while (!f->bad && isspace((unsigned char)*at))
        at++;
    return !f->bad && f->depth == 0 && at == f->end;
}

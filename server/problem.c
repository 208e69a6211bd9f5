/* The problem of a request: one error from errors.def, its detail and all bad fields. */
#include "server/problem.h"

#include <ctype.h>
#include <string.h>

#include "core/base/utf8.h"

enum { MAX_BAD_FIELDS = 100 };

static const struct {
    int status;
    const char *name, *title;
} errors[ERR_COUNT] = {
    [OK] = { 200, "OK", "OK" },
#define X(name, status, title) [ERR_##name] = { status, #name, title },
#include "server/errors.def"
#undef X
};

static const char *const faults[FAULT_COUNT] = {
#define FAULT(name) [FAULT_##name] = #name,
#include "server/errors.def"
#undef FAULT
};

/* The codes are the names in lower case, computed once because every error reply and log line uses them. */
static char err_codes[ERR_COUNT][40], fault_codes[FAULT_COUNT][40];

__attribute__((constructor)) static void codes_init(void)
{
    for (int e = 0; e < ERR_COUNT; e++)
        for (size_t i = 0; errors[e].name[i] && i < sizeof err_codes[e] - 1; i++)
            err_codes[e][i] = (char)tolower((unsigned char)errors[e].name[i]);
    for (int f = 0; f < FAULT_COUNT; f++)
        for (size_t i = 0; faults[f][i] && i < sizeof fault_codes[f] - 1; i++)
            fault_codes[f][i] = (char)tolower((unsigned char)faults[f][i]);
}

void problem_begin(struct problem *p, struct arena *arena)
{
    *p = (struct problem){ .arena = arena };
}

void problem_clear(struct problem *p)
{
    problem_begin(p, p->arena);
}

/* Details and fields quote requests, whose bytes are not always UTF-8; and a precision may cut a character.
 */
static char *printable(char *text)
{
    size_t at = 0, len = strlen(text);
    while ((at += utf8_check(text + at, len - at)) < len)
        text[at] = '?';
    return text;
}

enum err problem_set(struct problem *p, enum err e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    p->detail = printable(arena_vfmt(p->arena, fmt, args));
    va_end(args);
    return e;
}

enum err problem_field(struct problem *p, const char *field, enum fault fault, const char *fmt, ...)
{
    if (p->count++ >= MAX_BAD_FIELDS)
        return ERR_INVALID_FIELDS;
    struct bad_field *bad = arena_zero(p->arena, sizeof *bad);
    bad->field = printable(arena_text(p->arena, field));
    bad->fault = fault;
    va_list args;
    va_start(args, fmt);
    bad->detail = printable(arena_vfmt(p->arena, fmt, args));
    va_end(args);
    if (p->last)
        p->last->next = bad;
    else
        p->first = bad;
    p->last = bad;
    return ERR_INVALID_FIELDS;
}

int problem_status(enum err e)
{
    return errors[e].status;
}

const char *problem_title(enum err e)
{
    return errors[e].title;
}

const char *problem_code(enum err e)
{
    return err_codes[e];
}

const char *problem_fault_code(enum fault f)
{
    return fault_codes[f];
}

void problem_json(struct buf *out, enum err e, const struct problem *p, const char *request_id)
{
    buf_fmt(out, "{\"type\":\"urn:daybook:error:%s\",\"title\":", problem_code(e));
    buf_json_string(out, errors[e].title);
    buf_fmt(out, ",\"status\":%d,\"code\":\"%s\",\"detail\":", errors[e].status, problem_code(e));
    if (!p->detail && p->first)
        buf_fmt(out, "\"%d field%s not valid\"", p->count, p->count == 1 ? " is" : "s are");
    else
        buf_json_string(out, p->detail ? p->detail : errors[e].title);
    buf_text(out, ",\"request_id\":");
    buf_json_string(out, request_id);
    if (p->first) {
        buf_text(out, ",\"errors\":[");
        for (const struct bad_field *bad = p->first; bad; bad = bad->next) {
            buf_text(out, bad == p->first ? "{\"field\":" : ",{\"field\":");
            buf_json_string(out, bad->field);
            buf_fmt(out, ",\"code\":\"%s\",\"detail\":", problem_fault_code(bad->fault));
            buf_json_string(out, bad->detail);
            buf_char(out, '}');
        }
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

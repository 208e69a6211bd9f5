/* Parses request targets into path segments and query pairs, with strict decoding. */
#include "server/dispatch/uri.h"

#include "core/base/utf8.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes one segment, name or value. `where` is "path" or "query", for the error detail. */
static enum err decode(const char *from, size_t len, bool plus_is_space, const char *where,
                       struct arena *arena, const char **out, struct problem *p)
{
    char *text = arena_alloc(arena, len + 1);
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        char c = from[i];
        if (c == '+' && plus_is_space)
            c = ' ';
        if (c == '%') {
            int high = len - i > 2 ? hex_value(from[i + 1]) : -1;
            int low = len - i > 2 ? hex_value(from[i + 2]) : -1;
            if (high < 0 || low < 0)
                return problem_set(p, ERR_BAD_REQUEST,
                                   "a %% in the %s must be followed by two hexadecimal digits", where);
            c = (char)(high << 4 | low);
            if (c == '\0')
                return problem_set(p, ERR_NULL_CHARACTER, "the %s holds %%00", where);
            i += 2;
        }
        text[used++] = c;
    }
    text[used] = '\0';
    if (utf8_check(text, used) != used)
        return problem_set(p, ERR_INVALID_UTF8, "the %s is not valid UTF-8", where);
    *out = text;
    return OK;
}

static enum err split_path(const char *path, size_t len, struct arena *arena, struct uri *out,
                           struct problem *p)
{
    if (len <= 1)
        return OK; /* "/", or "*" */
    const char *end = path + len;
    for (const char *at = path + 1;; at++) { /* `at` is after a slash */
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash ? slash : end;
        if (out->segments == URI_SEGMENTS)
            return problem_set(p, ERR_BAD_REQUEST, "the path has more than %d segments", URI_SEGMENTS);
        TRY(decode(at, (size_t)(stop - at), false, "path", arena, &out->segment[out->segments], p));
        out->segments++;
        if (!slash)
            return OK;
        at = slash;
    }
}

static enum err split_query(const char *query, struct arena *arena, struct uri *out, struct problem *p)
{
    struct pair *pairs = NULL;
    size_t count = 0;
    while (*query) {
        size_t len = strcspn(query, "&");
        if (len > 0) { /* skip empty pairs: "a=1&&b=2" is common and harmless */
            if (count == URI_PAIRS)
                return problem_set(p, ERR_BAD_REQUEST, "the query has more than %d parameters", URI_PAIRS);
            if (!pairs)
                pairs = arena_alloc(arena, URI_PAIRS * sizeof *pairs);
            const char *equals = memchr(query, '=', len);
            size_t name_len = equals ? (size_t)(equals - query) : len;
            TRY(decode(query, name_len, true, "query", arena, &pairs[count].name, p));
            if (equals)
                TRY(decode(equals + 1, len - name_len - 1, true, "query", arena, &pairs[count].value, p));
            else
                pairs[count].value = "";
            count++;
        }
        query += len;
        query += *query == '&';
    }
    out->query = (struct pairs){ .count = count, .items = pairs };
    return OK;
}

/* Skips "http://host" of a target in absolute form, which every server must accept (RFC 9112, 3.2.2). */
static const char *skip_origin(const char *target)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i]);
        if (strncmp(target, schemes[i], len) == 0)
            return target + len + strcspn(target + len, "/?#");
    }
    return target;
}

enum err uri_parse(const char *target, struct arena *arena, struct uri *out, struct problem *p)
{
    *out = (struct uri){ .path = "/" };
    const char *path = skip_origin(target);
    if (strchr(path, '#'))
        return problem_set(p, ERR_BAD_REQUEST, "a request target has no fragment: write # as %%23");
    size_t len = strcspn(path, "?");
    bool absolute = path != target;
    if (len > 0)
        out->path = arena_copy(arena, path, len);
    if (len == 0 ? !absolute : *path != '/' && strcmp(path, "*") != 0)
        return problem_set(p, ERR_BAD_REQUEST, "a request target starts with /");
    TRY(split_path(path, len, arena, out, p));
    return path[len] == '?' ? split_query(path + len + 1, arena, out, p) : OK;
}

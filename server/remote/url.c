/* URLs of other servers from the settings. */
#include "server/remote/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { URL_MAX_BYTES = 2000 };

/* The part after "https://", or NULL. */
static const char *after_scheme(const char *url)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url + strlen(schemes[i]);
    return NULL;
}

bool url_is_valid(const char *url)
{
    const char *host = after_scheme(url);
    if (!host || strlen(url) > URL_MAX_BYTES)
        return false;
    size_t len = strcspn(host, "/?");
    if (!len || host[0] == ':' || memchr(host, '@', len))
        return false;
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("#\"<>\\^`{|}", *p))
            return false;
    return true;
}

const char *url_host(struct arena *arena, const char *url)
{
    const char *host = after_scheme(url);
    return arena_copy(arena, host, strcspn(host, "/?"));
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t more = strlen(end);
    return len >= more && memcmp(text + len - more, end, more) == 0;
}

/* "/v1", "/v2" */
static bool ends_with_version(const char *url, size_t len)
{
    size_t digits = 0;
    while (digits < len && isdigit((unsigned char)url[len - 1 - digits]))
        digits++;
    return digits && ends_with(url, len - digits, "/v");
}

const char *url_of(struct arena *arena, const char *given, const char *tail)
{
    size_t len = strlen(given);
    if (strchr(given, '?'))
        return given;
    while (len && given[len - 1] == '/')
        len--;
    if (ends_with(given, len, arena_fmt(arena, "/%s", tail)))
        return arena_copy(arena, given, len);
    return arena_fmt(arena, "%.*s%s/%s", (int)len, given, ends_with_version(given, len) ? "" : "/v1", tail);
}

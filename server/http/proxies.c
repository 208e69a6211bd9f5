/* The reverse proxies that are trusted to name their clients in X-Forwarded-For. */
#include "server/http/proxies.h"

#include <string.h>

#include "server/log.h"

enum { PROXIES_MAX = 64 };

static struct network proxies[PROXIES_MAX];
static size_t proxy_count;

bool proxies_read(const char *list)
{
    proxy_count = 0;
    for (const char *at = list + strspn(list, " ,"); *at; at += strspn(at, " ,")) {
        const size_t len = strcspn(at, " ,");
        if (proxy_count == PROXIES_MAX)
            return log_failure("--trusted-proxies has more than %d entries", PROXIES_MAX);
        if (!address_parse_network(at, len, &proxies[proxy_count++]))
            return log_failure("--trusted-proxies: \"%.*s\" is not an address or network such as 10.0.0.0/8",
                               (int)len, at);
        at += len;
    }
    return true;
}

bool proxies_trust(const struct address *a)
{
    for (size_t i = 0; i < proxy_count; i++)
        if (address_is_in(&proxies[i], a))
            return true;
    return false;
}

/* The last entry of the first `len` bytes of the list. */
static size_t last_entry(const char *list, size_t len, const char **entry)
{
    while (len && strchr(" \t,", list[len - 1]))
        len--;
    const char *start = list + len;
    while (start > list && !strchr(" \t,", start[-1]))
        start--;
    *entry = start;
    return (size_t)(list + len - start);
}

struct address proxies_client(struct address proxy, const char *forwarded_for)
{
    struct address client = proxy;
    size_t left = forwarded_for ? strlen(forwarded_for) : 0;
    const char *entry;
    for (size_t len; (len = last_entry(forwarded_for, left, &entry)) > 0;) {
        if (!address_parse(entry, len, &client)) /* "unknown": not known beyond the proxy that wrote it */
            return client;
        if (!proxies_trust(&client))
            return client;
        left = (size_t)(entry - forwarded_for);
    }
    return client;
}

/* The servers that the database URL names: parsing them, and walking through them. */
#include "db/hosts.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/memory.h"
#include "server/log.h"

enum {
    ONE_ADDRESS_LIMIT_S = 5,
    MANY_ADDRESSES_LIMIT_S = 2, /* the next address may answer */
    ADDRESSES_MAX = 256,        /* of one name */
};

struct host {
    const char *name, *address, *port; /* NULL: libpq's default */
};

struct hosts {
    struct hosts *next;
    char *url;
    char *names, *addresses, *ports; /* the lists that the entries point into */
    struct host *list;
    int count;
    long timeout_s;  /* connect_timeout; 0: not given */
    atomic_int good; /* the server that was usable last, as host * ADDRESSES_MAX + address */
};

/* ---- parsing ---- */

/* Makes libpq read the URL, the environment and the service file without connecting anywhere: it checks this
 * option after it has read the others, and before it opens a socket. */
static PQconninfoOption *resolved_options(const char *url)
{
    const char *const names[] = { "dbname", "channel_binding", NULL };
    const char *const values[] = { url, "do not connect", NULL };
    PGconn *pg = PQconnectStartParams(names, values, 1);
    PQconninfoOption *options = pg ? PQconninfo(pg) : NULL;
    PQfinish(pg);
    return options;
}

static const char *option(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val && o->val[0] ? o->val : NULL;
    return NULL;
}

static int items(const char *list)
{
    int n = 1;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

/* The i-th item of a list, which is split in place: `*rest` is the part that is left. NULL: empty. */
static const char *item(char **rest)
{
    char *at = *rest ? strsep(rest, ",") : NULL;
    return at && *at ? at : NULL;
}

/* libpq reports lists of different lengths better than we could: then there is one entry without overrides.
 */
static int count_hosts(const char *names, const char *addresses, const char *ports)
{
    int n = addresses ? items(addresses) : items(names);
    bool fits = (!names || items(names) == n) && (!ports || items(ports) == 1 || items(ports) == n);
    return fits ? n : 1;
}

static bool fill(struct hosts *h)
{
    char *names = h->names, *addresses = h->addresses, *ports = h->ports;
    bool one_port = items(ports) == 1;
    const char *port = one_port ? item(&ports) : NULL;
    for (int i = 0; i < h->count; i++) {
        h->list[i] = (struct host){ item(&names), item(&addresses), one_port ? port : item(&ports) };
        if (!h->list[i].port)
            h->list[i].port = "5432"; /* an empty item of a list: the entry must override the whole list */
        if ((!h->list[i].name && !h->list[i].address) || (h->addresses && !h->list[i].address))
            return log_failure("invalid database URL: with several hosts, each needs its name or address");
    }
    return true;
}

static struct hosts *parse(const char *url)
{
    struct hosts *h = memory_zero(1, sizeof *h);
    PQconninfoOption *options = resolved_options(url);
    const char *names = option(options, "host"), *addresses = option(options, "hostaddr"),
               *ports = option(options, "port"), *timeout = option(options, "connect_timeout"),
               *balance = option(options, "load_balance_hosts"); /* since libpq 16 */
    h->url = memory_text(url);
    h->names = names ? memory_text(names) : NULL;
    h->addresses = addresses ? memory_text(addresses) : NULL;
    h->ports = ports ? memory_text(ports) : NULL;
    h->count = count_hosts(names, addresses, ports);
    h->list = memory_zero((size_t)h->count, sizeof *h->list);
    long seconds = timeout ? strtol(timeout, NULL, 10) : 0;
    h->timeout_s = seconds > 0 ? seconds : 0;
    if (balance && strcmp(balance, "random") == 0)
        h->good = (int)(random() % h->count) * ADDRESSES_MAX;
    PQconninfoFree(options);
    if (h->count == 1)
        h->list[0] = (struct host){ items(h->names) == 1 ? h->names : NULL, h->addresses, NULL };
    return h;
}

static void release(struct hosts *h)
{
    free(h->url);
    free(h->names);
    free(h->addresses);
    free(h->ports);
    free(h->list);
    free(h);
}

/* The message of libpq quotes the URL, which may contain a password. So we print our own. */
static bool is_readable(const char *url)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &why);
    PQconninfoFree(options);
    PQfreemem(why);
    return options || log_failure("invalid database URL: expected "
                                  "postgresql://user:password@host:5432/database");
}

struct hosts *hosts_read(const char *url)
{
    static struct hosts *all;
    for (struct hosts *h = all; h; h = h->next)
        if (strcmp(h->url, url) == 0)
            return h;
    if (!is_readable(url))
        return NULL;
    struct hosts *h = parse(url);
    if (h->count > 1 && !fill(h)) {
        release(h);
        return NULL;
    }
    h->next = all;
    all = h;
    return h;
}

/* ---- walking ---- */

void hosts_begin(struct hosts *hosts, struct hosts_walk *w)
{
    *w = (struct hosts_walk){ .host = atomic_load(&hosts->good) / ADDRESSES_MAX, .left = hosts->count };
}

static struct addrinfo *nth(struct addrinfo *found, int n)
{
    while (n-- && found)
        found = found->ai_next;
    return found;
}

/* The address to try, of a host that is a name; "" if libpq should find it. Like libpq's own look-up, this
 * one blocks. */
static void resolve(struct hosts *hosts, struct hosts_walk *w, const struct host *host,
                    char out[HOSTS_NAME_SIZE])
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    out[0] = 0;
    if (w->tried == 0)
        w->address_count = 1;
    if (!host->name || host->address || host->name[0] == '/' || host->name[0] == '@' ||
        getaddrinfo(host->name, NULL, &hints, &found) != 0)
        return;
    int count = 0, good = atomic_load(&hosts->good);
    for (struct addrinfo *a = found; a && count < ADDRESSES_MAX; a = a->ai_next)
        count++;
    if (w->tried == 0)
        w->address = good / ADDRESSES_MAX == w->host ? good % ADDRESSES_MAX : 0;
    w->address_count = count;
    w->address %= count;
    const struct addrinfo *a = nth(found, w->address);
    if (getnameinfo(a->ai_addr, a->ai_addrlen, out, HOSTS_NAME_SIZE, NULL, 0, NI_NUMERICHOST) != 0)
        out[0] = 0;
    freeaddrinfo(found);
}

PGconn *hosts_connect(struct hosts *hosts, struct hosts_walk *w)
{
    const struct host *host = &hosts->list[w->host];
    char address[HOSTS_NAME_SIZE];
    resolve(hosts, w, host, address);
    /* The URL (dbname) overrides the parameters before it, but not those after it. NULL overrides nothing. */
    const char *const names[] = { "keepalives_idle",  "dbname",          "host", "hostaddr", "port",
                                  "application_name", "client_encoding", NULL };
    const char *const values[] = { "30",       hosts->url, host->name, address[0] ? address : host->address,
                                   host->port, "daybookd", "UTF8",     NULL };
    PGconn *pg = PQconnectStartParams(names, values, 1);
    if (pg)
        PQsetErrorVerbosity(pg, PQERRORS_VERBOSE); /* for the SQLSTATE, which libpq gives in no other way */
    return pg;
}

int64_t hosts_limit_us(const struct hosts *hosts, const struct hosts_walk *w)
{
    bool many = hosts->count > 1 || w->address_count > 1;
    long s = hosts->timeout_s ? hosts->timeout_s : many ? MANY_ADDRESSES_LIMIT_S : ONE_ADDRESS_LIMIT_S;
    return (int64_t)s * 1000 * 1000;
}

void hosts_leave(struct hosts *hosts, const struct hosts_walk *w)
{
    int good = atomic_load(&hosts->good);
    if (good / ADDRESSES_MAX == w->host)
        atomic_compare_exchange_strong(&hosts->good, &good, (w->host + 1) % hosts->count * ADDRESSES_MAX);
}

bool hosts_next(struct hosts *hosts, struct hosts_walk *w)
{
    if (++w->tried < w->address_count) {
        w->address++;
        return true;
    }
    hosts_leave(hosts, w);
    if (--w->left > 0) {
        *w = (struct hosts_walk){ .host = (w->host + 1) % hosts->count, .left = w->left };
        return true;
    }
    hosts_begin(hosts, w);
    return false;
}

void hosts_found(struct hosts *hosts, const struct hosts_walk *w)
{
    atomic_store(&hosts->good, w->host * ADDRESSES_MAX + w->address);
}

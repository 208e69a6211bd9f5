/* Counters of one loop, and the page that Prometheus reads. */
#include "server/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/stats.h"
#include "server/http/clients.h"
#include "server/http/daemon.h"
#include "server/http/route.h"
#include "server/loop.h"

/* Written by one loop, read by any: relaxed atomics, so that counting costs an addition. */
typedef _Atomic int64_t counter;

static const int statuses[] = { 200, 201, 204, 304, 400, 401, 403, 404, 405, 408,
                                409, 413, 415, 422, 429, 431, 499, 500, 503, 504 };
enum { STATUSES = sizeof statuses / sizeof *statuses };

static const int64_t bounds_us[] = { 250,   500,   1000,   2500,   5000,    10000,
                                     25000, 50000, 100000, 250000, 1000000, 10000000 };
enum { BOUNDS = sizeof bounds_us / sizeof *bounds_us };

struct route_metrics {
    counter by_status[STATUSES];
    counter bucket[BOUNDS + 1]; /* the last: beyond all bounds */
    counter sum_us;
};

struct gauges {
    counter ready[LANES], in_flight[LANES], waiting, reconnects, lost, requests;
};

struct metrics {
    struct metrics *next;
    struct loop *loop;
    struct gauges gauges;
    struct route_metrics routes[]; /* one more than there are routes */
};

static struct metrics *all;

static void add(counter *c, int64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static void set(counter *c, int64_t n)
{
    atomic_store_explicit(c, n, memory_order_relaxed);
}

static int64_t get(const counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

struct metrics *metrics_open(struct loop *loop)
{
    struct metrics *m = calloc(1, sizeof *m + (size_t)(route_count() + 1) * sizeof m->routes[0]);
    m->loop = loop;
    m->next = all;
    all = m;
    return m;
}

void metrics_close(void)
{
    while (all) {
        struct metrics *next = all->next;
        free(all);
        all = next;
    }
}

void metrics_request(struct metrics *m, int route, int status, int64_t us)
{
    struct route_metrics *r = &m->routes[route];
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i] == status)
            add(&r->by_status[i], 1);
    int b = 0;
    while (b < BOUNDS && us > bounds_us[b])
        b++;
    add(&r->bucket[b], 1);
    add(&r->sum_us, us);
}

void metrics_observe(struct metrics *m)
{
    struct db_stats stats;
    db_stats(m->loop->db, &stats);
    for (int i = 0; i < LANES; i++) {
        set(&m->gauges.ready[i], stats.ready[i]);
        set(&m->gauges.in_flight[i], stats.in_flight[i]);
    }
    set(&m->gauges.waiting, stats.waiting);
    set(&m->gauges.reconnects, stats.reconnects);
    set(&m->gauges.lost, stats.lost);
    set(&m->gauges.requests, http_in_flight(m->loop->http));
}

/* ---- the page ---- */

static void family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *route_label(int i, char label[128])
{
    const struct route *r = i < route_count() ? route_at(i) : NULL;
    snprintf(label, 128, "method=\"%s\",route=\"%s\"", r ? method_name(r->method) : "", r ? r->path : "none");
    return label;
}

/* The counter at this offset, over all loops. */
static int64_t sum(size_t offset)
{
    int64_t total = 0;
    for (const struct metrics *m = all; m; m = m->next)
        total += get((const counter *)(const void *)((const char *)m + offset));
    return total;
}

static int64_t sum_route(int route, size_t member, int index)
{
    return sum(offsetof(struct metrics, routes) + (size_t)route * sizeof(struct route_metrics) + member +
               (size_t)index * sizeof(counter));
}

static void requests(struct buf *out)
{
    char label[128];
    family(out, "daybook_requests_total", "counter", "Requests by route and status.");
    for (int i = 0; i <= route_count(); i++)
        for (int s = 0; s < STATUSES; s++) {
            int64_t n = sum_route(i, offsetof(struct route_metrics, by_status), s);
            if (n)
                buf_fmt(out, "daybook_requests_total{%s,status=\"%d\"} %lld\n", route_label(i, label),
                        statuses[s], (long long)n);
        }
}

static void latencies(struct buf *out)
{
    char label[128];
    family(out, "daybook_request_seconds", "histogram",
           "Time from the request line to the end of the answer.");
    for (int i = 0; i <= route_count(); i++) {
        int64_t upto[BOUNDS + 1], total = 0;
        for (int b = 0; b <= BOUNDS; b++)
            upto[b] = total += sum_route(i, offsetof(struct route_metrics, bucket), b);
        if (!total)
            continue;
        route_label(i, label);
        for (int b = 0; b < BOUNDS; b++)
            buf_fmt(out, "daybook_request_seconds_bucket{%s,le=\"%g\"} %lld\n", label,
                    (double)bounds_us[b] / 1e6, (long long)upto[b]);
        buf_fmt(out, "daybook_request_seconds_bucket{%s,le=\"+Inf\"} %lld\n", label, (long long)total);
        buf_fmt(out, "daybook_request_seconds_sum{%s} %.6f\n", label,
                (double)sum_route(i, offsetof(struct route_metrics, sum_us), 0) / 1e6);
        buf_fmt(out, "daybook_request_seconds_count{%s} %lld\n", label, (long long)total);
    }
}

/* Values that are not by route: one row each. */
static const struct {
    const char *name, *type, *label, *help;
    size_t offset;
} values[] = {
#define GAUGE(member) offsetof(struct metrics, gauges) + offsetof(struct gauges, member)
    { "daybook_requests_in_flight", "gauge", "", "Requests being worked on or sent.", GAUGE(requests) },
    { "daybook_db_connections", "gauge", "{lane=\"read\"}", "Database connections that are up, by lane.",
      GAUGE(ready[0]) },
    { "daybook_db_connections", "gauge", "{lane=\"write\"}", NULL, GAUGE(ready[1]) },
    { "daybook_db_connections", "gauge", "{lane=\"slow\"}", NULL, GAUGE(ready[2]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"read\"}",
      "Statements sent or queued and not answered, by lane.", GAUGE(in_flight[0]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"write\"}", NULL, GAUGE(in_flight[1]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"slow\"}", NULL, GAUGE(in_flight[2]) },
    { "daybook_db_waiting", "gauge", "", "Requests that wait for a connection of the slow lane.",
      GAUGE(waiting) },
    { "daybook_db_reconnects_total", "counter", "", "Database connections that were lost and came back.",
      GAUGE(reconnects) },
    { "daybook_db_lost_statements_total", "counter", "",
      "Statements in flight when their connection was lost.", GAUGE(lost) },
#undef GAUGE
};

void metrics_page(struct buf *out)
{
    requests(out);
    latencies(out);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].help)
            family(out, values[i].name, values[i].type, values[i].help);
        buf_fmt(out, "%s%s %lld\n", values[i].name, values[i].label, (long long)sum(values[i].offset));
    }
    family(out, "daybook_connections", "gauge", "Client connections that are open.");
    buf_fmt(out, "daybook_connections %lld\n", clients_count());
    family(out, "daybook_info", "gauge", "The version that runs.");
    buf_fmt(out, "daybook_info{version=\"%s\",commit=\"%s\"} 1\n", DAYBOOK_VERSION, DAYBOOK_COMMIT);
}

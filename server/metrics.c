/* Per-loop counters and the Prometheus page. */
#include "server/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.gen.h"
#include "core/base/memory.h"
#include "core/reflect/cadence.h"
#include "core/reflect/reflect_note.h"
#include "db/db.h"
#include "server/dispatch/route.h"
#include "server/embed_worker.h"
#include "server/http/clients.h"
#include "server/http/daemon.h"
#include "server/http/method.h"
#include "server/http/tls.h"
#include "server/loop.h"
#include "server/worker.h"

/* Written by one loop, read by all. Relaxed atomics make counting as cheap as an addition. */
typedef _Atomic int64_t counter;

/* Those of the routes, and that of each error; a request counts for the first that equals its status. 499:
 * the client has gone. */
static const int statuses[] = {
    200, 201, 204, 304, 499,
#define X(name, status, title) status,
#include "server/errors.def"
#undef X
};
enum { STATUSES = sizeof statuses / sizeof *statuses };

static const int64_t bounds_us[] = { 250,   500,   1000,   2500,   5000,    10000,
                                     25000, 50000, 100000, 250000, 1000000, 10000000 };
enum { BOUNDS = sizeof bounds_us / sizeof *bounds_us };

struct route_metrics {
    counter by_status[STATUSES];
    counter bucket[BOUNDS + 1]; /* the last one: above all bounds */
    counter sum_us;
};

/* Models are slow. */
static const int64_t remote_bounds_us[] = { 10000,   50000,   100000,   250000,   500000,   1000000,
                                            2500000, 5000000, 10000000, 20000000, 40000000, 80000000 };
enum { REMOTE_BOUNDS = sizeof remote_bounds_us / sizeof *remote_bounds_us };

struct remote_metrics {
    counter by_outcome[OUTCOMES];
    counter bucket[REMOTE_BOUNDS + 1];
    counter sum_us, tries;
};

/* Reflections by outcome; each outcome has its reasons. */
static const char *const no_reason[] = { "", NULL };
static const char *const model_reasons[] = { "model_failed", "model_timeout", NULL };
static const struct {
    const char *outcome;
    const char *const *reasons;
} reflections[] = {
    { "ran", no_reason },
    { "skipped", cadence_reasons },
    { "rejected", note_verdict_names + 1 }, /* without "good" */
    { "model_failed", model_reasons },
};
enum { REFLECTIONS = sizeof reflections / sizeof *reflections, REASONS_MAX = 8 };

/* Clients choose the names, so their number is limited: further ones count as the last slot, "other". */
enum { DENIED_TYPES = 32, DENIED_NAME = 65 };
struct denied {
    char type[DENIED_NAME];
    counter n; /* 0: the slot is free. Set after the name, because other loops read both */
};

struct gauges {
    counter ready[LANES], in_flight[LANES], waiting, reconnects, lost, requests;
    counter embed_queued, embed_texts, embed_us, worker_jobs;
};

struct metrics {
    struct metrics *next;
    struct loop *loop;
    struct gauges gauges;
    struct remote_metrics remotes[METRICS_REMOTES];
    counter tokens_in, tokens_out, circuit_open;
    counter reflections[REFLECTIONS][REASONS_MAX];
    struct denied denied[DENIED_TYPES + 1];
    counter backfill[BACKFILLS];
    counter keys_rejected[METRICS_KEYS], key_lookups;
    struct route_metrics routes[]; /* one per route, and one for "no route" */
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
    struct metrics *m = memory_zero(1, sizeof *m + (size_t)(route_count() + 1) * sizeof m->routes[0]);
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
        if (statuses[i] == status) {
            add(&r->by_status[i], 1);
            break;
        }
    int b = 0;
    while (b < BOUNDS && us > bounds_us[b])
        b++;
    add(&r->bucket[b], 1);
    add(&r->sum_us, us);
}

void metrics_remote(struct metrics *m, enum metrics_remote what, enum metrics_outcome outcome, int64_t us,
                    int tries)
{
    struct remote_metrics *r = &m->remotes[what];
    add(&r->by_outcome[outcome], 1);
    if (outcome == OUTCOME_CIRCUIT_OPEN)
        return;
    int b = 0;
    while (b < REMOTE_BOUNDS && us > remote_bounds_us[b])
        b++;
    add(&r->bucket[b], 1);
    add(&r->sum_us, us);
    add(&r->tries, tries);
}

void metrics_tokens(struct metrics *m, int64_t in, int64_t out)
{
    add(&m->tokens_in, in);
    add(&m->tokens_out, out);
}

void metrics_circuit(struct metrics *m, bool open)
{
    set(&m->circuit_open, open);
}

void metrics_backfill(struct metrics *m, enum metrics_backfill what, int64_t n)
{
    if (what == BACKFILL_PENDING)
        set(&m->backfill[what], n);
    else
        add(&m->backfill[what], n);
}

void metrics_key_rejected(struct metrics *m, enum metrics_key reason)
{
    add(&m->keys_rejected[reason], 1);
}

void metrics_key_lookup(struct metrics *m)
{
    add(&m->key_lookups, 1);
}

void metrics_reflection(struct metrics *m, const char *outcome, const char *reason)
{
    for (int o = 0; o < REFLECTIONS; o++)
        for (int i = 0; strcmp(reflections[o].outcome, outcome) == 0 && reflections[o].reasons[i]; i++)
            if (strcmp(reflections[o].reasons[i], reason ? reason : "") == 0)
                add(&m->reflections[o][i], 1);
}

void metrics_write_denied(struct metrics *m, const char *type)
{
    struct denied *slot = m->denied;
    while (slot < m->denied + DENIED_TYPES && get(&slot->n) && strcmp(slot->type, type) != 0)
        slot++;
    if (!get(&slot->n))
        snprintf(slot->type, sizeof slot->type, "%s", slot == m->denied + DENIED_TYPES ? "other" : type);
    atomic_fetch_add_explicit(&slot->n, 1, memory_order_release);
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
    set(&m->gauges.requests, daemon_in_flight(m->loop->http));
    struct embed_worker_stats embed = { 0 };
    if (m->loop->embed_worker)
        embed_worker_stats(m->loop->embed_worker, &embed);
    set(&m->gauges.embed_queued, embed.queued);
    set(&m->gauges.embed_texts, embed.texts);
    set(&m->gauges.embed_us, embed.us);
    set(&m->gauges.worker_jobs, m->loop->worker ? worker_jobs(m->loop->worker) : 0);
}

/* ---- the page ---- */

static void family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static char *route_label(int i, char label[128])
{
    const struct route *r = i < route_count() ? route_at(i) : NULL;
    snprintf(label, 120, "method=\"%s\",route=\"%s\"", r ? method_name(r->method) : "", r ? r->path : "none");
    return label;
}

/* The sum of the counter at this offset over all loops. */
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

/* `label` is "" or ends with a comma. `upto` holds cumulative counts. */
static void histogram(struct buf *out, const char *name, const char *label, const int64_t *bounds,
                      int bound_count, const int64_t *upto, int64_t sum_of_us)
{
    int64_t total = upto[bound_count];
    size_t label_len = strlen(label);
    for (int b = 0; b < bound_count; b++)
        buf_fmt(out, "%s_bucket{%sle=\"%g\"} %lld\n", name, label, (double)bounds[b] / 1e6,
                (long long)upto[b]);
    buf_fmt(out, "%s_bucket{%sle=\"+Inf\"} %lld\n", name, label, (long long)total);
    const char *braces[] = { label_len ? "{" : "", label_len ? "}" : "" };
    int shown = label_len ? (int)label_len - 1 : 0;
    buf_fmt(out, "%s_sum%s%.*s%s %.6f\n", name, braces[0], shown, label, braces[1], (double)sum_of_us / 1e6);
    buf_fmt(out, "%s_count%s%.*s%s %lld\n", name, braces[0], shown, label, braces[1], (long long)total);
}

static void latencies(struct buf *out)
{
    char label[128];
    family(out, "daybook_request_seconds", "histogram",
           "Time from the request line to the end of the response.");
    for (int i = 0; i <= route_count(); i++) {
        int64_t upto[BOUNDS + 1], total = 0;
        for (int b = 0; b <= BOUNDS; b++)
            upto[b] = total += sum_route(i, offsetof(struct route_metrics, bucket), b);
        if (!total)
            continue;
        strcat(route_label(i, label), ",");
        histogram(out, "daybook_request_seconds", label, bounds_us, BOUNDS, upto,
                  sum_route(i, offsetof(struct route_metrics, sum_us), 0));
    }
}

static int64_t sum_remote(int what, size_t member, int index)
{
    return sum(offsetof(struct metrics, remotes) + (size_t)what * sizeof(struct remote_metrics) + member +
               (size_t)index * sizeof(counter));
}

/* Calls to models and embedding endpoints, with the same families for each kind. */
static void remotes(struct buf *out)
{
    static const char *const kinds[METRICS_REMOTES] = { "model", "embedding" };
    static const char *const outcomes[OUTCOMES] = { "ok", "failed", "timeout", "given_up", "circuit_open" };
    for (int k = 0; k < METRICS_REMOTES; k++) {
        char name[64];
        snprintf(name, sizeof name, "daybook_%s_calls_total", kinds[k]);
        family(out, name, "counter", "Calls by outcome; retries are not counted.");
        for (int o = 0; o < OUTCOMES; o++)
            buf_fmt(out, "%s{outcome=\"%s\"} %lld\n", name, outcomes[o],
                    (long long)sum_remote(k, offsetof(struct remote_metrics, by_outcome), o));
        snprintf(name, sizeof name, "daybook_%s_requests_total", kinds[k]);
        family(out, name, "counter", "HTTP requests sent, retries included.");
        buf_fmt(out, "%s %lld\n", name, (long long)sum_remote(k, offsetof(struct remote_metrics, tries), 0));
        int64_t upto[REMOTE_BOUNDS + 1], total = 0;
        for (int b = 0; b <= REMOTE_BOUNDS; b++)
            upto[b] = total += sum_remote(k, offsetof(struct remote_metrics, bucket), b);
        snprintf(name, sizeof name, "daybook_%s_seconds", kinds[k]);
        family(out, name, "histogram", "Time from the call to the end of the response, retries included.");
        histogram(out, name, "", remote_bounds_us, REMOTE_BOUNDS, upto,
                  sum_remote(k, offsetof(struct remote_metrics, sum_us), 0));
    }
}

static void reflections_page(struct buf *out)
{
    family(out, "daybook_reflections_total", "counter", "Reflections by outcome and reason.");
    for (int o = 0; o < REFLECTIONS; o++)
        for (int i = 0; reflections[o].reasons[i]; i++)
            buf_fmt(out, "daybook_reflections_total{outcome=\"%s\",reason=\"%s\"} %lld\n",
                    reflections[o].outcome, reflections[o].reasons[i],
                    (long long)sum(offsetof(struct metrics, reflections) +
                                   (size_t)(o * REASONS_MAX + i) * sizeof(counter)));
}

/* The sum over all loops, and whether `slot` is the first one of its type. */
static int64_t denied_sum(const struct denied *slot, bool *first)
{
    const struct denied *earliest = NULL;
    int64_t total = 0;
    for (const struct metrics *m = all; m; m = m->next)
        for (int i = 0; i <= DENIED_TYPES; i++) {
            const struct denied *d = &m->denied[i];
            const int64_t n = atomic_load_explicit(&d->n, memory_order_acquire);
            if (!n || strcmp(d->type, slot->type) != 0)
                continue;
            total += n;
            earliest = earliest ? earliest : d;
        }
    *first = earliest == slot;
    return total;
}

static void denied_page(struct buf *out)
{
    family(out, "daybook_write_denied_total", "counter",
           "What the write policy did not store, by observation type.");
    for (const struct metrics *m = all; m; m = m->next)
        for (int i = 0; i <= DENIED_TYPES; i++) {
            bool first = false;
            if (!atomic_load_explicit(&m->denied[i].n, memory_order_acquire))
                continue;
            const long long total = (long long)denied_sum(&m->denied[i], &first);
            if (first)
                buf_fmt(out, "daybook_write_denied_total{observation_type=\"%s\"} %lld\n", m->denied[i].type,
                        total);
        }
}

/* Values without a route label. */
static const struct {
    const char *name, *type, *label, *help;
    size_t offset;
} values[] = {
#define GAUGE(member) offsetof(struct metrics, gauges) + offsetof(struct gauges, member)
    { "daybook_requests_in_flight", "gauge", "", "Requests being read, worked on or sent.", GAUGE(requests) },
    { "daybook_db_connections", "gauge", "{lane=\"read\"}", "Database connections that are up, by lane.",
      GAUGE(ready[0]) },
    { "daybook_db_connections", "gauge", "{lane=\"write\"}", NULL, GAUGE(ready[1]) },
    { "daybook_db_connections", "gauge", "{lane=\"slow\"}", NULL, GAUGE(ready[2]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"read\"}",
      "Statements queued or sent that have no result yet, by lane.", GAUGE(in_flight[0]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"write\"}", NULL, GAUGE(in_flight[1]) },
    { "daybook_db_in_flight", "gauge", "{lane=\"slow\"}", NULL, GAUGE(in_flight[2]) },
    { "daybook_db_waiting", "gauge", "", "Requests waiting for a connection of the slow lane.",
      GAUGE(waiting) },
    { "daybook_db_reconnects_total", "counter", "", "Database connections that were lost and re-established.",
      GAUGE(reconnects) },
    { "daybook_db_lost_statements_total", "counter", "",
      "Statements in flight when their connection was lost.", GAUGE(lost) },
    { "daybook_model_tokens_total", "counter", "{direction=\"input\"}",
      "Tokens sent to models and received from them.", offsetof(struct metrics, tokens_in) },
    { "daybook_model_tokens_total", "counter", "{direction=\"output\"}", NULL,
      offsetof(struct metrics, tokens_out) },
    { "daybook_embedding_circuit_open", "gauge", "",
      "Loops whose circuit breaker for the embedding endpoint is open.",
      offsetof(struct metrics, circuit_open) },
    { "daybook_worker_jobs", "gauge", "", "Jobs queued or running on the worker threads.",
      GAUGE(worker_jobs) },
    { "daybook_embedder_queued_texts", "gauge", "", "Texts queued for the built-in embedder.",
      GAUGE(embed_queued) },
    { "daybook_embedder_texts_total", "counter", "", "Texts embedded by the built-in embedder.",
      GAUGE(embed_texts) },
#define REJECTED(what) offsetof(struct metrics, keys_rejected) + (what) * sizeof(counter)
    { "daybook_keys_rejected_total", "counter", "{reason=\"unknown\"}",
      "Requests rejected because of their key, by reason.", REJECTED(METRICS_KEY_UNKNOWN) },
    { "daybook_keys_rejected_total", "counter", "{reason=\"revoked\"}", NULL, REJECTED(METRICS_KEY_REVOKED) },
    { "daybook_keys_rejected_total", "counter", "{reason=\"expired\"}", NULL, REJECTED(METRICS_KEY_EXPIRED) },
    { "daybook_keys_rejected_total", "counter", "{reason=\"limited\"}", NULL, REJECTED(METRICS_KEY_LIMITED) },
    { "daybook_keys_rejected_total", "counter", "{reason=\"address_limited\"}", NULL,
      REJECTED(METRICS_KEY_ADDRESS_LIMITED) },
    { "daybook_key_lookups_total", "counter", "", "Unknown keys that were looked up in the database.",
      offsetof(struct metrics, key_lookups) },
#define BACKFILL(what) offsetof(struct metrics, backfill) + (what) * sizeof(counter)
    { "daybook_backfill_pending", "gauge", "",
      "Entries and situations that the background job has to embed, when it counted last.",
      BACKFILL(BACKFILL_PENDING) },
    { "daybook_backfill_embedded_total", "counter", "", "Vectors that were made in the background.",
      BACKFILL(BACKFILL_EMBEDDED) },
    { "daybook_backfill_refused_total", "counter", "", "Pending texts that the embedder refused.",
      BACKFILL(BACKFILL_REJECTED) },
    { "daybook_backfill_failures_total", "counter", "", "Times that the background job had to pause.",
      BACKFILL(BACKFILL_FAILED) },
};

void metrics_page(struct buf *out)
{
    requests(out);
    latencies(out);
    remotes(out);
    reflections_page(out);
    denied_page(out);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].help)
            family(out, values[i].name, values[i].type, values[i].help);
        buf_fmt(out, "%s%s %lld\n", values[i].name, values[i].label, (long long)sum(values[i].offset));
    }
    family(out, "daybook_embedder_seconds_total", "counter", "Time spent by the built-in embedder.");
    buf_fmt(out, "daybook_embedder_seconds_total %.6f\n", (double)sum(GAUGE(embed_us)) / 1e6);
    struct buf why = { .arena = out->arena };
    family(out, "daybook_ready", "gauge", "1 while /health/ready is 200, else 0.");
    buf_fmt(out, "daybook_ready %d\n", db_health(&why));
    family(out, "daybook_connections", "gauge", "Open client connections.");
    buf_fmt(out, "daybook_connections %lld\n", clients_connected());
    if (tls_expiry()) {
        family(out, "daybook_tls_expiry_seconds", "gauge",
               "When the certificate expires, in seconds since 1970.");
        buf_fmt(out, "daybook_tls_expiry_seconds %lld\n", (long long)tls_expiry());
    }
    family(out, "daybook_info", "gauge", "The running version.");
    buf_fmt(out, "daybook_info{version=\"%s\",commit=\"%s\"} 1\n", DAYBOOK_VERSION, DAYBOOK_COMMIT);
}

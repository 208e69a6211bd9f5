/* One pipelined connection to PostgreSQL: connecting, losing the connection, reconnecting. */
#include "db/conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/config.h"
#include "server/log.h"

enum {
    CONNECT_LIMIT_US = 5 * 1000 * 1000,
    BACKOFF_FIRST_US = 50 * 1000,
    BACKOFF_MAX_US = 2 * 1000 * 1000,
};

const char *const conn_lane_names[] = { [LANE_READ] = "read", [LANE_WRITE] = "write", [LANE_SLOW] = "slow" };

static void conn_ready(struct watch *w, uint32_t events);
static void conn_timer(struct timer *t);

void conn_init(struct conn *c, struct db *db, enum lane lane)
{
    c->db = db;
    c->lane = lane;
    c->watch.fd = -1;
    c->watch.ready = conn_ready;
    c->timer.fire = conn_timer;
    c->prepared = calloc((size_t)statements_count, sizeof *c->prepared);
}

/* The only function that changes the state. A connection may be lost in any state; it becomes ready only
 * after connecting. */
static void set_state(struct conn *c, enum conn_state state)
{
    assert(state == CONN_DOWN || (state == CONN_CONNECTING && c->state == CONN_DOWN) ||
           (state == CONN_READY && c->state == CONN_CONNECTING));
    c->state = state;
}

/* ---- losing the connection ---- */

static int64_t backoff_us(int failures)
{
    int64_t us = BACKOFF_FIRST_US;
    for (int i = 1; i < failures && us < BACKOFF_MAX_US; i++)
        us *= 2;
    if (us > BACKOFF_MAX_US)
        us = BACKOFF_MAX_US;
    return us / 2 + random() % (us / 2 + 1); /* jitter: all connections were lost at the same moment */
}

/* libpq may close its socket at any time, and opens another one for each address that it tries. Watch a
 * duplicate instead: nobody else can reuse its number. */
static void unwatch(struct conn *c)
{
    if (c->watch.fd < 0)
        return;
    loop_watch(c->db->loop, &c->watch, 0);
    close(c->watch.fd);
    c->watch.fd = -1;
}

static bool watch(struct conn *c, uint32_t events)
{
    unwatch(c);
    c->watch.fd = fcntl(PQsocket(c->pg), F_DUPFD_CLOEXEC, 0);
    if (c->watch.fd < 0)
        return false;
    loop_watch(c->db->loop, &c->watch, events);
    return true;
}

/* Closes the connection and fails its operations. `retry_us`: delay before the reconnect; -1: never. The
 * timer is set first because a callback may ask for this connection. */
static void conn_drop(struct conn *c, int64_t retry_us)
{
    unwatch(c);
    loop_timer_off(c->db->loop, &c->timer);
    if (c->held)
        PQclear(c->held);
    c->held = NULL;
    if (c->pg)
        PQfinish(c->pg);
    c->pg = NULL;
    set_state(c, CONN_DOWN);
    c->unsynced = c->unflushed = c->stale = false;
    c->batches = 0;
    memset(c->prepared, 0, (size_t)statements_count * sizeof *c->prepared);
    if (retry_us >= 0)
        loop_timer(c->db->loop, &c->timer, retry_us);
    if (c->uncommitted) {
        PQclear(c->uncommitted_result);
        c->db->lost_ops++;
        conn_end_op(c, conn_take_uncommitted(c), NULL, ERR_OUTCOME_UNKNOWN);
    }
    struct op *resend = c->resend;
    c->resend = NULL;
    conn_fail_ops(c, resend, ERR_DATABASE_UNAVAILABLE);
    while (c->queue)
        conn_end_op(c, conn_dequeue(c), NULL, ERR_DATABASE_UNAVAILABLE);
    while (c->pending_count) {
        struct pending o = conn_pop_pending(c);
        if (o.kind == PENDING_RESULT && o.op) {
            c->db->lost_ops++;
            conn_fail_ops(c, o.op, o.op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE);
        }
    }
}

void conn_lost(struct conn *c, const char *why)
{
    if (c->db->stopping) {
        conn_drop(c, -1);
        return;
    }
    c->failures++;
    size_t len = strcspn(why, "\n");
    /* Log attempts 1, 2, 4, 8, ... so that an outage does not flood the log. */
    if ((c->failures & (c->failures - 1)) == 0)
        log_event(LOG_WARN, "db_lost", "lane=%s attempt=%d reason=\"%.*s\"", conn_lane_names[c->lane],
                  c->failures, (int)len, why);
    conn_drop(c, backoff_us(c->failures));
    if (c->lane == LANE_SLOW)
        lanes_slow_changed(c->db);
}

void conn_close(struct conn *c)
{
    conn_drop(c, -1);
    free(c->pending);
    free(c->prepared);
}

static void conn_timer(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    struct loop *l = c->db->loop;
    if (c->state == CONN_DOWN) {
        conn_connect(c);
    } else if (c->state == CONN_CONNECTING) {
        conn_lost(c, "no connection within 5 s");
    } else if (c->pending_count) {
        int64_t limit = l->config->request_timeout_ms * 1000 + ANSWER_GRACE_US;
        int64_t silent = l->now_us - c->active_us;
        if (silent >= limit)
            conn_lost(c, "the server does not answer");
        else
            loop_timer(l, t, limit - silent);
    }
}

/* ---- connecting ---- */

static void notice(void *unused, const char *text)
{
    (void)unused;
    log_event(LOG_DEBUG, "db_notice", "reason=\"%.*s\"", (int)strcspn(text, "\n"), text);
}

void conn_connect(struct conn *c)
{
    struct loop *l = c->db->loop;
    /* Fast statements are planned once. The planner must use their indexes and index order: a plan that
     * suits an empty table would get slow as the table grows. Slow statements are planned for their values,
     * without parallel workers, and as if the data were in memory, which it mostly is. A scan of a vector
     * index continues for as long as the statement reads; the statement limits it. */
    const char *plans =
        c->lane == LANE_SLOW
            ? "-c jit=off -c random_page_cost=1.1 -c max_parallel_workers_per_gather=0"
              " -c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=400"
              " -c hnsw.max_scan_tuples=1000000 -c hnsw.scan_mem_multiplier=16"
            : "-c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_sort=off";
    char options[768];
    snprintf(
        options, sizeof options,
        "-c search_path=daybook,public -c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 -c "
        "synchronous_commit=on"
        " -c extra_float_digits=1 -c default_transaction_isolation=read\\ committed -c statement_timeout=%lld"
        " -c idle_in_transaction_session_timeout=%lld %s",
        (long long)l->config->request_timeout_ms, (long long)l->config->request_timeout_ms + 10000, plans);
    const char *const names[] = { "dbname",  "application_name", "client_encoding",
                                  "options", "keepalives_idle",  NULL };
    const char *const values[] = { c->db->url, "daybookd", "UTF8", options, "30", NULL };
    c->pg = PQconnectStartParams(names, values, 1);
    set_state(c, CONN_CONNECTING);
    loop_timer(l, &c->timer, CONNECT_LIMIT_US);
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD) {
        conn_lost(c, c->pg ? PQerrorMessage(c->pg) : "out of memory");
        return;
    }
    PQsetNoticeProcessor(c->pg, notice, NULL);
    if (!watch(c, EPOLLOUT))
        conn_lost(c, strerror(errno));
}

static void conn_poll(struct conn *c)
{
    struct loop *l = c->db->loop;
    PostgresPollingStatusType want = PQconnectPoll(c->pg);
    if (want == PGRES_POLLING_FAILED) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    if (!watch(c, want == PGRES_POLLING_WRITING ? EPOLLOUT : EPOLLIN)) {
        conn_lost(c, strerror(errno));
        return;
    }
    if (want != PGRES_POLLING_OK)
        return;
    if (PQsetnonblocking(c->pg, 1) != 0 || !PQenterPipelineMode(c->pg)) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    loop_timer_off(l, &c->timer);
    set_state(c, CONN_READY);
    if (c->failures || c->db->reconnects)
        log_event(LOG_INFO, "db_connected", "lane=%s attempts=%d", conn_lane_names[c->lane], c->failures + 1);
    c->db->reconnects += c->failures > 0;
    c->failures = 0;
    c->poisoned = false;
    /* The slow lane sends its statements unprepared. */
    for (int i = 0; c->lane != LANE_SLOW && i < statements_count; i++) {
        const struct statement *st = statements[i];
        if (st->lane != c->lane)
            continue;
        if (!conn_prepare(c, NULL, st, false) || (st->together && !conn_prepare(c, NULL, st, true))) {
            conn_lost(c, PQerrorMessage(c->pg));
            return;
        }
    }
    c->unsynced = true;
    conn_flush(c);
    if (c->lane == LANE_SLOW)
        lanes_slow_changed(c->db);
}

static void conn_ready(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    if (c->state == CONN_CONNECTING) {
        conn_poll(c);
        return;
    }
    if (events & EPOLLOUT)
        conn_flush(c);
    if (c->state == CONN_READY && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        conn_receive(c);
}

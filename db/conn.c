/* One pipelined connection to PostgreSQL: it connects, prepares, sends, receives and comes back by itself. */
#include "db/conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/array_text.h"
#include "db/lanes.h"
#include "server/config.h"
#include "server/log.h"

enum {
    /* Reads that come while so many batches are under way wait for the next one: the fewer batches, the fewer
     * switches between the service and the server. One is being answered while the other is being read. */
    MOST_BATCHES = 2,
    MOST_TOGETHER = 64, /* reads in one execution */
    CONNECT_LIMIT_US = 5 * 1000 * 1000,
    ANSWER_GRACE_US =
        5 * 1000 * 1000, /* beyond the statement time-out: then the server, or the way to it, is dead */
    BACKOFF_FIRST_US = 50 * 1000,
    BACKOFF_MOST_US = 2 * 1000 * 1000,
};

/* How many statements of a connection may be under way; the slow lane has one user at a time. */
static const int window[] = { [LANE_READ] = 2 * MOST_TOGETHER, [LANE_WRITE] = 4, [LANE_SLOW] = 1000 };

static const char *const lane_names[] = { [LANE_READ] = "read",
                                          [LANE_WRITE] = "write",
                                          [LANE_SLOW] = "slow" };

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

/* ---- what the server owes ---- */

static void owe(struct conn *c, struct owed o)
{
    if (c->owed_count == c->owed_cap) {
        unsigned cap = c->owed_cap ? c->owed_cap * 2 : 64;
        struct owed *ring = calloc(cap, sizeof *ring);
        for (unsigned i = 0; i < c->owed_count; i++)
            ring[i] = c->owed[(c->owed_head + i) % c->owed_cap];
        free(c->owed);
        c->owed = ring;
        c->owed_cap = cap;
        c->owed_head = 0;
    }
    if (!c->owed_count) {
        c->active_us = c->db->loop->now_us;
        if (c->state == CONN_READY && !c->timer.armed)
            loop_timer(c->db->loop, &c->timer,
                       c->db->loop->config->request_timeout_ms * 1000 + ANSWER_GRACE_US);
    }
    c->owed[(c->owed_head + c->owed_count++) % c->owed_cap] = o;
}

static struct owed unowe(struct conn *c)
{
    struct owed o = c->owed[c->owed_head];
    c->owed_head = (c->owed_head + 1) % c->owed_cap;
    c->owed_count--;
    return o;
}

void result_release(PGresult *result, int *sharers)
{
    if (sharers && --*sharers)
        return;
    free(sharers);
    PQclear(result);
}

static void op_finish(struct conn *c, struct op *op, PGresult *result, enum err err)
{
    c->in_flight -= op->sent;
    if (op->done)
        op->done(op, result, err);
    else if (result)
        result_release(result, op->sharers);
    op_free(c->db, op);
}

static void ops_fail(struct conn *c, struct op *list, enum err err)
{
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        op_finish(c, op, NULL, err);
    }
}

static void enqueue(struct conn *c, struct op *op)
{
    op->next = NULL;
    if (c->queue)
        c->queue_last->next = op;
    else
        c->queue = op;
    c->queue_last = op;
    c->queued++;
}

static struct op *dequeue(struct conn *c)
{
    struct op *op = c->queue;
    c->queue = op->next;
    c->queued--;
    op->next = NULL;
    return op;
}

static struct op *take_done(struct conn *c)
{
    struct op *op = c->done;
    c->done = NULL;
    c->done_result = NULL;
    return op;
}

/* ---- losing it ---- */

static int64_t backoff_us(int failures)
{
    int64_t us = BACKOFF_FIRST_US;
    for (int i = 1; i < failures && us < BACKOFF_MOST_US; i++)
        us *= 2;
    if (us > BACKOFF_MOST_US)
        us = BACKOFF_MOST_US;
    return us / 2 + random() % (us / 2 + 1); /* jitter: all connections were lost at the same moment */
}

/* libpq closes its socket by itself when that breaks, and takes another one for each address that it tries.
 * So a descriptor of our own is watched: its number cannot become somebody else's. */
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

/* Ends whatever waits for it. `retry_us`: when to connect again, -1: never. It is set before anybody is told,
 * who might ask for this connection again. */
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
    c->state = CONN_DOWN;
    c->unsynced = c->unflushed = c->stale = false;
    c->batches = 0;
    memset(c->prepared, 0, (size_t)statements_count * sizeof *c->prepared);
    if (retry_us >= 0)
        loop_timer(c->db->loop, &c->timer, retry_us);
    if (c->done) {
        PQclear(c->done_result);
        c->db->lost_ops++;
        op_finish(c, take_done(c), NULL, ERR_OUTCOME_UNKNOWN);
    }
    struct op *again = c->again;
    c->again = NULL;
    ops_fail(c, again, ERR_DATABASE_UNAVAILABLE);
    while (c->queue)
        op_finish(c, dequeue(c), NULL, ERR_DATABASE_UNAVAILABLE);
    while (c->owed_count) {
        struct owed o = unowe(c);
        if (o.kind == OWED_RESULT && o.op) {
            c->db->lost_ops++;
            ops_fail(c, o.op, o.op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE);
        }
    }
}

static void conn_lost(struct conn *c, const char *why)
{
    if (c->db->stopping) {
        conn_drop(c, -1);
        return;
    }
    c->failures++;
    size_t len = strcspn(why, "\n");
    /* A database that is away is said once by each connection, then at ever longer intervals. */
    if ((c->failures & (c->failures - 1)) == 0)
        log_event(LOG_WARN, "db_lost", "lane=%s attempt=%d reason=\"%.*s\"", lane_names[c->lane], c->failures,
                  (int)len, why);
    conn_drop(c, backoff_us(c->failures));
    if (c->lane == LANE_SLOW)
        lane_slow_changed(c->db);
}

void conn_close(struct conn *c)
{
    conn_drop(c, -1);
    free(c->owed);
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
    } else if (c->owed_count) {
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
    /* Fast statements are planned once, for indexes and their order: a plan that was right for an empty table
     * must not stay. Slow ones are planned for their values, for one process each, and as if all were in
     * memory, which it mostly is. An index of vectors goes on for as long as the statement asks: that limits
     * it. */
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
    c->state = CONN_CONNECTING;
    loop_timer(l, &c->timer, CONNECT_LIMIT_US);
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD) {
        conn_lost(c, c->pg ? PQerrorMessage(c->pg) : "out of memory");
        return;
    }
    PQsetNoticeProcessor(c->pg, notice, NULL);
    if (!watch(c, EPOLLOUT))
        conn_lost(c, strerror(errno));
}

/* Of its two forms; true at once when it is prepared. */
static bool prepare(struct conn *c, struct op *op, const struct statement *st, bool together)
{
    bool *prepared = &c->prepared[st->index].form[together];
    if (*prepared)
        return true;
    *prepared = PQsendPrepare(c->pg, together ? st->together_name : st->name,
                              together ? st->together : st->sql, 0, NULL);
    if (*prepared)
        owe(c, (struct owed){ OWED_PREPARE, op, st, together });
    return *prepared;
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
    c->state = CONN_READY;
    if (c->failures || c->db->reconnects)
        log_event(LOG_INFO, "db_connected", "lane=%s attempts=%d", lane_names[c->lane], c->failures + 1);
    c->db->reconnects += c->failures > 0;
    c->failures = 0;
    c->poisoned = false;
    /* Whatever this lane may be asked is prepared now; the slow lane prepares what it meets. */
    for (int i = 0; c->lane != LANE_SLOW && i < statements_count; i++) {
        const struct statement *st = statements[i];
        if (st->lane != c->lane)
            continue;
        if (!prepare(c, NULL, st, false) || (st->together && !prepare(c, NULL, st, true))) {
            conn_lost(c, PQerrorMessage(c->pg));
            return;
        }
    }
    c->unsynced = true;
    conn_flush(c);
    if (c->lane == LANE_SLOW)
        lane_slow_changed(c->db);
}

/* ---- sending ---- */

static void sync_now(struct conn *c)
{
    if (!PQpipelineSync(c->pg))
        return; /* the socket is gone; the next read says so */
    owe(c, (struct owed){ OWED_SYNC, NULL, NULL });
    c->batches++;
    c->unsynced = false;
    c->unflushed = true;
}

/* One execution for all of the list: each parameter is the array of their values. */
static bool send_together(struct conn *c, const struct op *list)
{
    const struct statement *st = list->statement;
    struct arena arena = { 0 };
    const char **arrays = arena_alloc(&arena, (size_t)st->param_count * sizeof *arrays);
    for (int i = 0; i < st->param_count; i++) {
        struct buf out = { .arena = &arena };
        for (const struct op *op = list; op; op = op->next)
            array_text_add(&out, op->values[i]);
        arrays[i] = array_text_end(&out);
    }
    bool sent = PQsendQueryPrepared(c->pg, st->together_name, st->param_count, arrays, NULL, NULL, 0);
    arena_release(&arena);
    return sent;
}

static bool send_op(struct conn *c, struct op *op)
{
    const struct statement *st = op->statement;
    if (!st) {
        if (!PQsendQueryParams(c->pg, op->plain, 0, NULL, NULL, NULL, NULL, 0))
            return false;
    } else if (op->next) {
        if (!prepare(c, op, st, true) || !send_together(c, op))
            return false;
    } else if (st->lane == LANE_SLOW) {
        /* Planned for its values each time. What is prepared may get a plan for any values: to sort a million
         * rows for a page that an index has in order. */
        if (!PQsendQueryParams(c->pg, st->sql, st->param_count, NULL, op->values, NULL, NULL, 0))
            return false;
    } else {
        if (!prepare(c, op, st, false))
            return false;
        if (!PQsendQueryPrepared(c->pg, st->name, st->param_count, op->values, NULL, NULL, 0))
            return false;
    }
    owe(c, (struct owed){ OWED_RESULT, op, st });
    c->unsynced = c->unflushed = true;
    return true;
}

bool conn_usable(const struct conn *c)
{
    return c->state == CONN_READY && !c->stale;
}

static enum err transmit(struct conn *c, struct op *op)
{
    if (op->alone && c->unsynced)
        sync_now(c);
    if (!send_op(c, op)) {
        conn_lost(c, PQerrorMessage(c->pg));
        return op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE;
    }
    for (struct op *each = op; each; each = each->next) {
        each->sent = true;
        c->in_flight++;
    }
    if (op->alone)
        sync_now(c);
    return OK;
}

enum err conn_send(struct conn *c, struct op *op)
{
    if (!conn_usable(c))
        return ERR_DATABASE_UNAVAILABLE;
    if (c->lane != LANE_READ && c->in_flight < window[c->lane])
        return transmit(c, op);
    enqueue(c, op);
    return OK;
}

/* Takes those behind `op` in the queue that can be executed together with it. */
static void gather(struct conn *c, struct op *op)
{
    struct op **at = &c->queue, *last = op;
    c->queue_last = NULL;
    for (int count = 1; *at;) {
        struct op *other = *at;
        if (count < MOST_TOGETHER && other->statement == op->statement && !other->alone && other->done) {
            *at = other->next;
            c->queued--;
            other->next = NULL;
            last = last->next = other;
            count++;
        } else {
            c->queue_last = other;
            at = &other->next;
        }
    }
}

/* Sends what the window has room for; what nobody waits for is dropped. */
static void send_queued(struct conn *c)
{
    while (c->queue && c->in_flight < window[c->lane] && conn_usable(c)) {
        struct op *op = dequeue(c);
        if (!op->done) {
            op_finish(c, op, NULL, OK);
            continue;
        }
        if (op->statement && op->statement->together && !op->alone)
            gather(c, op);
        enum err err = transmit(c, op);
        if (err != OK)
            ops_fail(c, op, err);
    }
}

void conn_flush(struct conn *c)
{
    if (c->state != CONN_READY)
        return;
    if (c->lane == LANE_READ && c->batches < MOST_BATCHES)
        send_queued(c);
    if (c->unsynced)
        sync_now(c);
    if (!c->unflushed)
        return;
    int left = PQflush(c->pg);
    if (left < 0) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    c->unflushed = left > 0;
    loop_watch(c->db->loop, &c->watch, left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* ---- receiving ---- */

/* What an error of the server means to a caller; the first row whose prefix fits. */
static const struct {
    const char *state;
    enum err read, write;
    bool retryable;
    bool stale; /* of the connection: what it prepared no longer fits the tables */
} sqlstates[] = {
    { "57014", ERR_REQUEST_TIMEOUT, ERR_REQUEST_TIMEOUT, false }, /* statement_timeout */
    { "40001", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, true },
    { "40P01", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, true },
    { "0A000", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false,
      true }, /* a column has another type */
    { "26000", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false,
      true },                                                        /* it is no longer prepared */
    { "57P", ERR_DATABASE_UNAVAILABLE, ERR_OUTCOME_UNKNOWN, false }, /* shut down while it ran */
    { "08", ERR_DATABASE_UNAVAILABLE, ERR_OUTCOME_UNKNOWN, false },
    { "53", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false },    /* out of disk, memory, slots */
    { "58", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false },    /* its disk fails */
    { "25006", ERR_DATABASE_UNAVAILABLE, ERR_DATABASE_UNAVAILABLE, false }, /* a standby */
    { "22", ERR_BAD_REQUEST, ERR_BAD_REQUEST,
      false }, /* a value that the columns cannot hold, as in a forged cursor */
    { "", ERR_INTERNAL, ERR_INTERNAL, false },
};

static enum err result_error(struct conn *c, struct op *op, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    size_t i = 0;
    while (state && strncmp(state, sqlstates[i].state, strlen(sqlstates[i].state)) != 0)
        i++;
    if (!state) /* made by libpq itself: the connection broke */
        return op->writes ? ERR_OUTCOME_UNKNOWN : ERR_DATABASE_UNAVAILABLE;
    op->retryable = sqlstates[i].retryable;
    c->stale |= sqlstates[i].stale;
    enum err e = op->writes ? sqlstates[i].write : sqlstates[i].read;
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (e != ERR_BAD_REQUEST && !op->retryable)
        log_event(e == ERR_INTERNAL ? LOG_ERROR : LOG_WARN, "db_error",
                  "lane=%s statement=%s sqlstate=%s message=\"%s\"", lane_names[c->lane],
                  op->statement ? op->statement->name : op->plain, state, message ? message : "");
    return e;
}

static void preparation_done(struct conn *c, const struct owed *o)
{
    PGresult *r = c->held;
    c->held = NULL;
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        c->prepared[o->statement->index].form[o->together] = false;
    if (PQresultStatus(r) == PGRES_FATAL_ERROR && o->op) {
        o->op->unprepared = result_error(c, o->op, r);
    } else if (PQresultStatus(r) == PGRES_FATAL_ERROR) {
        const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        log_event(LOG_ERROR, "db_prepare", "statement=%s message=\"%s\"", o->statement->name,
                  message ? message : "");
    }
    PQclear(r);
}

/* Each gets its own row of the result, which they share; its first column says whose a row is. */
static void together_done(struct conn *c, struct op *list, PGresult *r)
{
    int rows[MOST_TOGETHER], ops = 0;
    for (const struct op *op = list; op; op = op->next)
        rows[ops++] = -1;
    for (int row = PQntuples(r) - 1; row >= 0; row--) {
        int n = atoi(PQgetvalue(r, row, 0));
        assert(n >= 1 && n <= ops);
        rows[n - 1] = row;
    }
    int *sharers = malloc(sizeof *sharers);
    *sharers = ops;
    ops = 0;
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        op->sharers = sharers;
        op->first = rows[ops++];
        op->count = op->first >= 0;
        op_finish(c, op, r, OK);
    }
}

/* None of them was done, and none is to blame for sure: each is sent alone. */
static void not_together(struct conn *c, struct op *list)
{
    for (struct op *op = list, *next; op; op = next) {
        next = op->next;
        op->unprepared = OK; /* which was said of the other form */
        op->next = c->again;
        c->again = op;
    }
}

static void statement_done(struct conn *c, struct op *op)
{
    PGresult *r = c->held;
    c->held = NULL;
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        if (op->writes) { /* done, but the server commits when it comes to the sync */
            c->done = op;
            c->done_result = r;
        } else if (op->next) {
            together_done(c, op, r);
        } else {
            op_finish(c, op, r, OK);
        }
        return;
    }
    if (op->next) {
        not_together(c, op);
    } else if (status == PGRES_PIPELINE_ABORTED && !op->unprepared && op->done && !op->alone) {
        op->next = c->again; /* another's error: it was not run; send it alone */
        c->again = op;
    } else {
        enum err err = op->unprepared                     ? op->unprepared
                       : status == PGRES_PIPELINE_ABORTED ? ERR_INTERNAL
                                                          : result_error(c, op, r);
        op_finish(c, op, NULL, err);
    }
    PQclear(r);
}

static void committed(struct conn *c)
{
    PGresult *r = c->done_result;
    op_finish(c, take_done(c), r, OK);
}

/* An error where only a sync was owed: what was done before it is rolled back. */
static void commit_failed(struct conn *c)
{
    PGresult *r = c->held;
    c->held = NULL;
    if (c->done) {
        PQclear(c->done_result);
        struct op *op = take_done(c);
        op_finish(c, op, NULL, result_error(c, op, r));
    }
    PQclear(r);
}

static void send_again(struct conn *c)
{
    struct op *list = c->again, *next;
    c->again = NULL;
    for (struct op *op = list; op; op = next) {
        next = op->next;
        op->alone = true;
        c->in_flight--;
        op->sent = false;
        enum err err = op->done ? conn_send(c, op) : ERR_DATABASE_UNAVAILABLE;
        if (err != OK)
            op_finish(c, op, NULL, err);
    }
}

static void conn_receive(struct conn *c)
{
    if (!PQconsumeInput(c->pg)) {
        conn_lost(c, PQerrorMessage(c->pg));
        return;
    }
    c->active_us = c->db->loop->now_us;
    while (c->state == CONN_READY && c->owed_count && !PQisBusy(c->pg)) {
        PGresult *r = PQgetResult(c->pg);
        if (r && PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
            PQclear(r);
            assert(c->owed[c->owed_head].kind == OWED_SYNC);
            unowe(c);
            c->batches--;
            if (c->done)
                committed(c);
        } else if (r) {
            if (c->held)
                PQclear(c->held);
            c->held = r;
        } else if (c->held && c->owed[c->owed_head].kind == OWED_SYNC) {
            commit_failed(c);
        } else if (c->held) {
            struct owed o = unowe(c);
            if (o.kind == OWED_PREPARE)
                preparation_done(c, &o);
            else
                statement_done(c, o.op);
        } else {
            conn_lost(c, PQerrorMessage(c->pg)); /* nothing where something was owed */
            return;
        }
    }
    if (c->state == CONN_READY && PQstatus(c->pg) == CONNECTION_BAD)
        conn_lost(c, PQerrorMessage(c->pg));
    if (c->again)
        send_again(c);
    if (c->lane != LANE_READ)
        send_queued(c);
    if (c->stale && c->state == CONN_READY && !c->owed_count)
        conn_lost(c, "the tables have changed: it is made anew");
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

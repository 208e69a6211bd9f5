/* What each loop publishes about its database, for /health/ready, and the probe that tests writing. */
#include "db/health.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/buf.h"
#include "db/db.h"
#include "db/lanes.h"

enum {
    LOOPS_MAX = 64,
    PROBE_US = 2 * 1000 * 1000,
    ASKED_US = 60 * 1000 * 1000, /* without questions for this long, nothing is probed */
    SILENT_US = 5 * 1000 * 1000,
    STUCK_US = 15 * 1000 * 1000, /* each loop turns at least once a second */
};

/* Written by its loop, read by all. Never freed: another loop may be reading. */
static struct published {
    _Atomic int64_t turn_us;   /* of its last turn */
    _Atomic int64_t silent_us; /* since when its reads wait for PostgreSQL; 0: they do not */
    _Atomic int cause[LANES];  /* why the lane has no connection, or CAUSE_NONE */
    _Atomic bool keys;         /* the API keys are loaded */
} loops[LOOPS_MAX];
static atomic_int loop_count;

enum probe_failure { PROBE_OK, PROBE_TIMED_OUT, PROBE_FAILED };

/* The probe runs on the first loop. */
static struct {
    _Atomic int64_t asked_us; /* last question */
    _Atomic int64_t sent_us;  /* a probe without an answer; 0: none */
    _Atomic int64_t good_us;  /* when the last probe that succeeded was sent */
    _Atomic int64_t full_us;  /* last error about a full disk */
    _Atomic int failure;
    struct timer timer;
    struct db *db;
    struct conn *conn;
    int64_t probe_us; /* when the last probe was sent */
} probe;

/* ---- probing ---- */

/* Commits durably without touching a table, so there is nothing to vacuum: the message is a WAL record that
 * logical replication ignores. Before that it writes a megabyte to a temporary file, because a full disk
 * fails only what needs new blocks. A read-only transaction may do both, so it reports whether it is one. */
static const char small_memory[] =
    "select set_config('work_mem','64kB',true),set_config('temp_tablespaces','',true)";
static const char probe_sql[] =
    "with room as materialized (select repeat('x',65536) as part from generate_series(1,16)) "
    "select current_setting('transaction_read_only'),count(part),"
    "pg_logical_emit_message(true,'daybook','probe') from room";

static void probed(struct op *op, PGresult *result, enum err err)
{
    struct conn *c = probe.conn;
    if (result && strcmp(PQgetvalue(result, 0, 0), "on") == 0)
        lanes_read_only(c);
    if (result)
        conn_release_result(result, op->result_refs);
    atomic_store(&probe.sent_us, 0);
    if (err == OK)
        atomic_store(&probe.good_us, probe.probe_us);
    /* If the connection was lost, or is about to be, the state of the lane says more. */
    bool rejected = err == ERR_DATABASE_UNAVAILABLE && c->state == CONN_READY && !c->leaving;
    atomic_store(&probe.failure, err == ERR_REQUEST_TIMEOUT ? PROBE_TIMED_OUT
                                 : rejected                 ? PROBE_FAILED
                                                            : PROBE_OK);
}

static void send_op(struct conn *c, const char *sql, bool last)
{
    struct op *op = lanes_op_new(c->db);
    op->plain = sql;
    op->writes = last;
    op->done = last ? probed : NULL;
    enum err err = conn_send(c, op);
    if (err != OK) {
        if (last)
            probed(op, NULL, err);
        lanes_op_free(c->db, op);
    }
}

/* Both statements are in one transaction, which ends at the sync after them. */
static void send_probe(struct db *db)
{
    struct conn *c = lanes_write_conn(db);
    if (!c)
        return;
    probe.conn = c;
    probe.probe_us = db->loop->now_us;
    atomic_store(&probe.sent_us, probe.probe_us);
    conn_end_batch(c);
    send_op(c, small_memory, false);
    send_op(c, probe_sql, true);
    conn_end_batch(c);
}

static void on_timer(struct timer *t)
{
    struct db *db = probe.db;
    bool asked = atomic_load(&probe.asked_us) + ASKED_US > db->loop->now_us && atomic_load(&probe.asked_us);
    if (asked && !atomic_load(&probe.sent_us))
        send_probe(db);
    loop_timer(db->loop, t, PROBE_US);
}

void health_open(struct db *db)
{
    struct published *p = &loops[db->loop->index];
    for (int lane = 0; lane < LANES; lane++)
        atomic_store(&p->cause[lane], CAUSE_NOT_YET);
    atomic_store(&p->turn_us, db->loop->now_us);
    atomic_fetch_add(&loop_count, 1);
    if (db->loop->index > 0)
        return;
    probe.db = db;
    probe.timer.fire = on_timer;
    loop_timer(db->loop, &probe.timer, PROBE_US);
}

void health_close(struct db *db)
{
    if (probe.db == db)
        loop_timer_off(db->loop, &probe.timer);
}

void health_storage_full(void)
{
    atomic_store(&probe.full_us, loop_clock_us());
}

/* ---- publishing ---- */

void db_publish(struct db *db, bool keys_loaded)
{
    struct published *p = &loops[db->loop->index];
    atomic_store_explicit(&p->turn_us, db->loop->now_us, memory_order_relaxed);
    atomic_store_explicit(&p->silent_us, db->read.pending_count ? db->read.active_us : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&p->keys, keys_loaded, memory_order_relaxed);
    if (!db->changed)
        return;
    db->changed = false;
    for (int lane = 0; lane < LANES; lane++)
        atomic_store_explicit(&p->cause[lane], lanes_cause(db, (enum lane)lane), memory_order_relaxed);
}

/* ---- answering ---- */

static const char *const work[LANES] = { [LANE_READ] = "reads",
                                         [LANE_WRITE] = "writes",
                                         [LANE_SLOW] = "long reads and transactions" };

static void say(struct buf *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct buf *why, const char *fmt, ...)
{
    if (why->len)
        buf_text(why, "; ");
    va_list args;
    va_start(args, fmt);
    buf_text(why, arena_vfmt(why->arena, fmt, args));
    va_end(args);
}

/* Names the loops that the sentence is about, unless it is about all. */
static void say_loops(struct buf *why, uint64_t which, int count)
{
    if (__builtin_popcountll(which) == count)
        return;
    const char *before = " (event loop ";
    for (int i = 0; i < count; i++)
        if (which >> i & 1) {
            buf_fmt(why, "%s%d", before, i);
            before = ", ";
        }
    buf_fmt(why, " of %d)", count);
}

static void say_lanes(struct buf *why, int count)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int cause = CAUSE_NOT_YET; cause < CAUSES; cause++) {
            uint64_t which = 0;
            for (int i = 0; i < count; i++)
                which |= (uint64_t)(atomic_load(&loops[i].cause[lane]) == cause) << i;
            if (!which || (lane == LANE_SLOW && cause == CAUSE_NOT_YET)) /* it is connected when needed */
                continue;
            say(why, "no connection for %s: %s", work[lane], hosts_cause_text((enum hosts_cause)cause));
            say_loops(why, which, count);
        }
}

/* Adds a sentence about the loops whose time, if it is set, is longer ago than the limit. */
static void say_since(struct buf *why, size_t member, int64_t limit_us, const char *what, int count)
{
    int64_t now = loop_clock_us(), longest = 0;
    uint64_t which = 0;
    for (int i = 0; i < count; i++) {
        int64_t since = atomic_load((_Atomic int64_t *)(void *)((char *)&loops[i] + member));
        if (!since || now - since < limit_us)
            continue;
        which |= (uint64_t)1 << i;
        longest = now - since > longest ? now - since : longest;
    }
    if (!which)
        return;
    say(why, "%s for %lld s", what, (long long)longest / 1000000);
    say_loops(why, which, count);
}

static void say_probe(struct buf *why)
{
    int64_t now = loop_clock_us(), sent = atomic_load(&probe.sent_us);
    if (atomic_load(&probe.full_us) > atomic_load(&probe.good_us))
        say(why, "the disk of PostgreSQL is full (53100)");
    if (sent && now - sent >= SILENT_US)
        say(why, "PostgreSQL has not answered a test write for %lld s", (long long)(now - sent) / 1000000);
    else if (atomic_load(&probe.failure) == PROBE_TIMED_OUT)
        say(why, "a test write was cancelled by the request time-out");
    else if (atomic_load(&probe.failure) == PROBE_FAILED)
        say(why, "PostgreSQL rejects writes; the log says why");
}

bool db_health(struct buf *why)
{
    const int count = atomic_load(&loop_count);
    atomic_store(&probe.asked_us, loop_clock_us());
    say_lanes(why, count);
    say_since(why, offsetof(struct published, silent_us), SILENT_US, "PostgreSQL has not answered reads",
              count);
    say_since(why, offsetof(struct published, turn_us), STUCK_US, "an event loop has not run", count);
    say_probe(why);
    for (int i = 0; !why->len && i < count; i++)
        if (!atomic_load(&loops[i].keys))
            say(why, "the API keys are not loaded");
    return !why->len;
}

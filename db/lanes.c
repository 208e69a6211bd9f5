/* The database connections of one loop, by lane. */
#include "db/lanes.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "db/conn_internal.h"
#include "db/db.h"
#include "db/health.h"
#include "server/config.h"
#include "server/log.h"

enum {
    REPLAN_US = 10 * 1000 * 1000,
    GROUPED_CONNECTIONS = 2, /* one executes a group of writes while the next one gathers */
    OTHERS_US = 100 * 1000,  /* one write connection is enough to be ready: the others connect later */
};

/* Each connection plans its statements once, for the table sizes of that moment. Tables grow, so the plans
 * are discarded now and then. That costs a few planner runs. */
static void replan(struct conn *c)
{
    struct op *op = lanes_op_new(c->db);
    op->plain = "DISCARD PLANS";
    op->alone = true;
    if (conn_send(c, op) != OK)
        lanes_op_free(c->db, op);
}

static void replan_all(struct timer *t)
{
    struct db *db = container_of(t, struct db, replan);
    replan(&db->read);
    for (int i = 0; i < db->write_count; i++)
        replan(&db->write[i]);
    loop_timer(db->loop, t, REPLAN_US);
}

static void lease_end(struct db *db, struct lease *lease, struct conn *conn, enum err why);

bool db_divide(const struct config *config, int loops, struct db_share *share)
{
    const int64_t max = config->max_db_connections;
    int each = (int)(max / loops) - 1; /* one is for reads */
    *share = (struct db_share){ (int)config->write_connections, (int)config->slow_connections };
    if (!max || each >= share->write + share->slow)
        return true;
    if (each < 2)
        return log_failure(
            "--max-db-connections %lld is not enough: each of the %d event loops needs at least 3 "
            "connections; give at least %d, or fewer --loops",
            (long long)max, loops, 3 * loops);
    /* A third is for long reads and transactions, as in the defaults. */
    int slow = each / 3 > 0 ? each / 3 : 1;
    if (slow > share->slow)
        slow = share->slow;
    if (each - slow > share->write)
        slow = each - share->write;
    *share = (struct db_share){ each - slow, slow };
    return true;
}

/* A connection that is not needed at once: it connects when the timer fires. */
static void connect_later(struct conn *c)
{
    c->rotating = true;
    loop_timer(c->db->loop, &c->timer, OTHERS_US);
}

struct db *db_open(struct loop *loop, const char *url, struct db_share share)
{
    struct hosts *hosts = hosts_read(url);
    if (!hosts)
        return NULL;
    struct db *db = memory_zero(1, sizeof *db);
    db->loop = loop;
    db->hosts = hosts;
    db->write_count = share.write;
    db->slow_count = share.slow;
    db->write = memory_zero((size_t)db->write_count, sizeof *db->write);
    db->slow = memory_zero((size_t)db->slow_count, sizeof *db->slow);
    db->events.timer.fire = conn_log_timer;
    health_open(db);
    conn_init(&db->read, db, LANE_READ);
    conn_connect(&db->read);
    for (int i = 0; i < db->write_count; i++) {
        conn_init(&db->write[i], db, LANE_WRITE);
        if (i == 0)
            conn_connect(&db->write[i]);
        else
            connect_later(&db->write[i]);
    }
    for (int i = 0; i < db->slow_count; i++)
        conn_init(&db->slow[i], db, LANE_SLOW);
    connect_later(&db->slow[0]); /* the others when they are first needed */
    db->replan.fire = replan_all;
    loop_timer(loop, &db->replan, REPLAN_US);
    return db;
}

void db_close(struct db *db)
{
    db->stopping = true;
    health_close(db);
    conn_log_flush(db);
    loop_timer_off(db->loop, &db->replan);
    conn_close(&db->read);
    for (int i = 0; i < db->write_count; i++)
        conn_close(&db->write[i]);
    for (int i = 0; i < db->slow_count; i++)
        conn_close(&db->slow[i]);
    while (db->waiting)
        lease_end(db, db->waiting, NULL, ERR_SHUTTING_DOWN);
    for (struct op *op = db->spare, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    free(db->write);
    free(db->slow);
    free(db);
}

void db_flush(struct db *db)
{
    conn_flush(&db->read);
    for (int i = 0; i < db->write_count; i++)
        conn_flush(&db->write[i]);
    for (int i = 0; i < db->slow_count; i++)
        conn_flush(&db->slow[i]);
}

bool db_ready(const struct db *db)
{
    bool writes = false;
    for (int i = 0; i < db->write_count; i++)
        writes |= db->write[i].state == CONN_READY;
    return writes && db->read.state == CONN_READY;
}

struct op *lanes_op_new(struct db *db)
{
    struct op *op = db->spare;
    if (op)
        db->spare = op->next;
    else
        op = memory_alloc(sizeof *op);
    *op = (struct op){ 0 };
    return op;
}

void lanes_op_free(struct db *db, struct op *op)
{
    op->next = db->spare;
    db->spare = op;
}

/* Whether the next write goes to `a` rather than to `b`: one that is held up comes last. */
static bool is_less_loaded(const struct conn *a, const struct conn *b)
{
    if (!a->abandoned != !b->abandoned)
        return !a->abandoned;
    return a->in_flight + a->queued < b->in_flight + b->queued;
}

/* The least loaded one: spreading writes lets PostgreSQL flush the commits of several connections at once.
 * Writes that can be executed together use few connections, so that they are. */
static struct conn *write_conn(struct db *db, int count)
{
    struct conn *best = NULL;
    for (int i = 0; i < count; i++) {
        struct conn *c = &db->write[i];
        if (conn_usable(c) && (!best || is_less_loaded(c, best)))
            best = c;
    }
    return best;
}

struct conn *lanes_write_conn(struct db *db)
{
    return write_conn(db, db->write_count);
}

static struct conn *conn_for(struct db *db, const struct op *op)
{
    struct conn *c = NULL;
    if (op->statement->lane == LANE_READ)
        return &db->read;
    if (conn_is_grouped(op) && db->write_count > GROUPED_CONNECTIONS)
        c = write_conn(db, GROUPED_CONNECTIONS);
    return c && !c->abandoned ? c : lanes_write_conn(db);
}

enum err lanes_send(struct db *db, struct op *op)
{
    struct conn *c = conn_for(db, op);
    return c ? conn_send(c, op) : ERR_DATABASE_UNAVAILABLE;
}

/* ---- the servers ---- */

static const struct conn *lane_conns(const struct db *db, enum lane lane, int *count)
{
    *count = lane == LANE_READ ? 1 : lane == LANE_WRITE ? db->write_count : db->slow_count;
    return lane == LANE_READ ? &db->read : lane == LANE_WRITE ? db->write : db->slow;
}

enum hosts_cause lanes_cause(const struct db *db, enum lane lane)
{
    int count;
    const struct conn *conns = lane_conns(db, lane, &count);
    enum hosts_cause cause = CAUSE_NOT_YET;
    for (int i = 0; i < count; i++) {
        if (conns[i].state == CONN_READY)
            return CAUSE_NONE;
        if (cause == CAUSE_NOT_YET)
            cause = conns[i].cause;
    }
    return cause;
}

void lanes_connected(struct conn *c)
{
    struct db *db = c->db;
    /* Reads must not stay behind on a standby when writes go elsewhere. */
    if (db->read.state == CONN_READY && db->read.read_only && lanes_cause(db, LANE_WRITE) == CAUSE_NONE)
        conn_leave(&db->read, CAUSE_NOT_YET, "there is a server that takes writes");
    if (c->lane == LANE_SLOW)
        lanes_slow_changed(db);
}

void lanes_read_only(struct conn *c)
{
    static const char why[] = "the server has become read-only";
    struct db *db = c->db;
    c->leaving = why; /* it is dropped after its last pending response */
    c->leaving_cause = CAUSE_READ_ONLY;
    struct conn *const lanes[] = { db->write, db->slow };
    const int counts[] = { db->write_count, db->slow_count };
    for (int lane = 0; lane < 2; lane++)
        for (int i = 0; i < counts[lane]; i++) {
            struct conn *other = &lanes[lane][i];
            if (other != c && other->state == CONN_READY && other->walk.host == c->walk.host)
                conn_leave(other, CAUSE_READ_ONLY, why);
        }
}

/* ---- the slow lane ---- */

static struct conn *slow_idle(struct db *db)
{
    for (int i = 0; i < db->slow_count; i++)
        if (conn_usable(&db->slow[i]) && !db->slow[i].busy)
            return &db->slow[i];
    return NULL;
}

/* Whether a slow connection is up or connecting. `connect`: starts one that is down. */
static bool slow_is_alive(struct db *db, bool connect)
{
    bool hope = false;
    for (int i = 0; i < db->slow_count; i++) {
        struct conn *c = &db->slow[i];
        if (connect && c->state == CONN_DOWN && !c->timer.armed && !c->busy) {
            conn_connect(c);
            connect = false;
        }
        hope |= c->state != CONN_DOWN || c->rotating;
    }
    return hope;
}

static void lease_unlink(struct db *db, struct lease *lease)
{
    struct lease **at = &db->waiting;
    while (*at != lease)
        at = &(*at)->next;
    *at = lease->next;
}

static bool lease_give_up(struct task_wait *w, enum err *why, bool even_writes)
{
    (void)why;
    (void)even_writes;
    lease_unlink(w->task->loop->db, container_of(w, struct lease, wait));
    return true;
}

static void lease_end(struct db *db, struct lease *lease, struct conn *conn, enum err why)
{
    lease_unlink(db, lease);
    lease->conn = conn;
    task_wake(&lease->wait, why);
}

enum err lanes_acquire(struct task *t, struct conn **conn)
{
    struct db *db = t->loop->db;
    TRY(task_can_wait(t));
    if (db->stopping)
        return ERR_SHUTTING_DOWN;
    *conn = db->waiting ? NULL : slow_idle(db);
    if (*conn) {
        (*conn)->busy = true;
        return OK;
    }
    if (!slow_is_alive(db, true))
        return ERR_DATABASE_UNAVAILABLE;
    struct lease lease = { .wait.give_up = lease_give_up };
    struct lease **end = &db->waiting;
    while (*end)
        end = &(*end)->next;
    *end = &lease;
    enum err err = task_wait(t, &lease.wait);
    *conn = lease.conn;
    return err;
}

void lanes_slow_changed(struct db *db)
{
    struct conn *conn;
    if (db->stopping)
        return; /* db_close ends the waiting leases */
    while (db->waiting && (conn = slow_idle(db))) {
        conn->busy = true;
        lease_end(db, db->waiting, conn, OK);
    }
    while (db->waiting && !slow_is_alive(db, false))
        lease_end(db, db->waiting, NULL, ERR_DATABASE_UNAVAILABLE);
}

static void rolled_back(struct op *op, PGresult *result, enum err err)
{
    struct conn *conn = op->user;
    (void)err; /* a lost connection has no transaction to roll back */
    if (result)
        PQclear(result);
    conn->busy = conn->poisoned = conn->lease_lost = false;
    lanes_slow_changed(conn->db);
}

void lanes_release(struct db *db, struct conn *conn)
{
    if (conn->poisoned && conn_usable(conn)) {
        /* A statement may still be running. Keep the lease until the rollback queued behind it is done. */
        struct op *op = lanes_op_new(db);
        op->plain = "ROLLBACK";
        op->done = rolled_back;
        op->user = conn;
        op->alone = true;
        if (conn_send(conn, op) == OK)
            return;
        lanes_op_free(db, op);
    }
    conn->busy = conn->poisoned = conn->lease_lost = false;
    lanes_slow_changed(db);
}

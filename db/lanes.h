/* The database connections of one loop, by lane. */
#ifndef DAYBOOK_DB_LANES_H
#define DAYBOOK_DB_LANES_H

#include "db/conn.h"
#include "server/task.h"

/* A task waiting for a connection of the slow lane. */
struct lease {
    struct task_wait wait;
    struct lease *next;
    struct conn *conn;
};

/* A log line about connections that were lost, or established, within a moment (db/conn_log.c). */
struct conn_event {
    bool lost;
    char host[HOSTS_NAME_SIZE], reason[HOSTS_REASON_SIZE];
    int count[LANE_SLOW + 1], attempts;
};
enum { CONN_EVENTS = 8 };

struct db {
    struct loop *loop;
    struct hosts *hosts;
    struct conn read;
    struct conn *write, *slow;
    int write_count, slow_count;
    struct lease *waiting; /* oldest first */
    struct op *spare;      /* free list */
    struct timer replan;
    uint64_t reconnects, lost_ops;
    bool stopping;
    bool changed; /* the state of a connection, since the last db_publish */
    struct {
        struct conn_event list[CONN_EVENTS];
        int count;
        struct timer timer;
    } events;
};

struct op *lanes_op_new(struct db *db);
void lanes_op_free(struct db *db, struct op *op);

/* Sends the statement on its lane, which must not be LANE_SLOW. */
enum err lanes_send(struct db *db, struct op *op) must_check;
/* Leases a connection of the slow lane to the calling coroutine; waits for one if all are busy. */
enum err lanes_acquire(struct task *t, struct conn **conn) must_check;
void lanes_release(struct db *db, struct conn *conn);
/* Called when a slow connection becomes usable or is lost. */
void lanes_slow_changed(struct db *db);
/* Called when a connection becomes ready. */
void lanes_connected(struct conn *c);
/* Called by a statement of this connection, which learned that the server takes no writes: the write and the
 * slow lane leave it. */
void lanes_read_only(struct conn *c);

/* The least loaded write connection; NULL: none is up. */
struct conn *lanes_write_conn(struct db *db);
/* Why the lane has no connection; CAUSE_NONE: it has one. */
enum hosts_cause lanes_cause(const struct db *db, enum lane lane);

#endif

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

struct db {
    struct loop *loop;
    const char *url;
    struct conn read;
    struct conn *write, *slow;
    int write_count, slow_count;
    struct lease *waiting; /* oldest first */
    struct op *spare;      /* free list */
    struct timer replan;
    uint64_t reconnects, lost_ops;
    bool stopping;
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

#endif

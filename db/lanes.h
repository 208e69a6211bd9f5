/* The database connections of one loop, by lane. */
#ifndef DAYBOOK_DB_LANES_H
#define DAYBOOK_DB_LANES_H

#include "db/conn.h"
#include "server/task.h"

/* A task that waits for a connection of the slow lane. */
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
    struct op *spare;
    struct timer replan;
    uint64_t reconnects, lost_ops;
    bool stopping;
};

struct op *op_new(struct db *db);
void op_free(struct db *db, struct op *op);

/* Puts the statement on its lane (not LANE_SLOW). */
enum err lane_send(struct db *db, struct op *op) must_check;
/* A connection of the slow lane for the calling coroutine, or why there is none. */
enum err lane_take(struct task *t, struct conn **conn) must_check;
void lane_give(struct db *db, struct conn *conn);
/* A slow connection became usable, or went away. */
void lane_slow_changed(struct db *db);

#endif

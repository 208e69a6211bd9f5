/* One pipelined connection to PostgreSQL: it connects, prepares, sends, receives and comes back by itself. */
#ifndef DAYBOOK_DB_CONN_H
#define DAYBOOK_DB_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/statement.h"
#include "server/loop.h"
#include "server/problem.h"

struct db;

/* One statement on its way. It outlives a request that stops waiting for it: then `done` is NULL. */
struct op {
    struct op *next;
    const struct statement *statement; /* NULL: `plain` */
    const char *plain;                 /* BEGIN and its like */
    const char *const *values;         /* of the parameters; borrowed from the request that waits */
    /* Called once. `result` is NULL exactly when `err` is not OK; the callee releases it. */
    void (*done)(struct op *op, PGresult *result, enum err err);
    void *user;
    bool writes;         /* when the connection is lost, nobody knows whether it was done */
    bool sent;           /* the server may have it */
    bool alone;          /* has a sync of its own, so that no other statement's error reaches it */
    bool retryable;      /* failed only because of another transaction */
    enum err unprepared; /* why its preparation failed; OK: it did not */
    int *sharers;        /* how many operations still use the result; NULL: it is this one's alone */
    int first, count;    /* of a shared result's rows, those of this operation */
};

void result_release(PGresult *result, int *sharers);

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_READY };

/* What the server owes us, in order. */
struct owed {
    enum { OWED_PREPARE, OWED_RESULT, OWED_SYNC } kind;
    struct op *op; /* a list by `next` when they are executed together; NULL: preparation at the start */
    const struct statement *statement;
    bool together; /* which of the statement's forms is prepared */
};

struct conn {
    struct watch watch;
    struct timer timer; /* reconnect, or the limit of a connection attempt or of an answer */
    struct db *db;
    PGconn *pg;
    enum conn_state state;
    enum lane lane;
    struct owed *owed; /* a ring */
    unsigned owed_head, owed_count, owed_cap;
    PGresult *held;  /* the result of the statement at the head, until it is complete */
    struct op *done; /* a write that was done; its commit comes with the sync behind it */
    PGresult *done_result;
    struct op *queue, *queue_last; /* not sent yet: the window is full, or reads that wait for others */
    int queued;
    struct op *again; /* aborted by another's error in their batch: to be sent alone */
    struct prepared {
        bool form[2]; /* alone, together */
    } *prepared;      /* by statement index */
    bool unsynced, unflushed;
    bool stale;    /* what it prepared no longer fits the tables: nothing more is sent, and it is made anew */
    bool busy;     /* slow lane: checked out */
    bool poisoned; /* slow lane: its user left in the middle; roll back before the next one */
    int failures;  /* since it last worked */
    int64_t active_us; /* when the server last said something, or was first owed an answer */
    int batches;       /* syncs that the server owes */
    int in_flight;     /* ops, for choosing the least loaded */
};

void conn_init(struct conn *c, struct db *db, enum lane lane);
void conn_connect(struct conn *c);
void conn_close(struct conn *c);

bool conn_usable(const struct conn *c);
/* Sends the statement, or queues it while enough are under way, or to be sent with others by conn_flush: one
 * that nobody waits for any more is then never run. On an error the operation is still the caller's:
 * ERR_DATABASE_UNAVAILABLE, nothing was done; ERR_OUTCOME_UNKNOWN, a write broke off. */
enum err conn_send(struct conn *c, struct op *op) must_check;
/* Ends the batch and pushes it to the socket; once a turn. */
void conn_flush(struct conn *c);

#endif

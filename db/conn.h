/* One pipelined connection to PostgreSQL. It prepares its statements and reconnects on its own. */
#ifndef DAYBOOK_DB_CONN_H
#define DAYBOOK_DB_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/hosts.h"
#include "db/statement.h"
#include "server/loop.h"
#include "server/problem.h"

struct conn;
struct db;

/* One statement in flight or queued. It outlives a request that stops waiting: then `done` is NULL. */
struct op {
    struct op *next;
    const struct statement *statement; /* NULL: `plain` */
    const char *plain;                 /* SQL text such as BEGIN */
    const char *const *values;         /* of the parameters; borrowed from the waiting request */
    /* Called once. `result` is NULL if and only if `err` is not OK; the callee releases it. */
    void (*done)(struct op *op, PGresult *result, enum err err);
    void *user;
    bool writes;          /* if the connection is lost, the outcome is unknown */
    struct conn *conn;    /* that it was sent on */
    bool sent;            /* the server may have received it */
    bool abandoned;       /* sent, but its request stopped waiting */
    bool alone;           /* gets its own sync, so errors of other statements do not abort it */
    bool separate;        /* is not executed together with others */
    bool retryable;       /* failed by a serialization failure or a deadlock */
    const char *detail;   /* what the error's title does not say; NULL: the title is enough */
    enum err prepare_err; /* why its preparation failed, or OK */
    int *result_refs;     /* reference count of a shared result; NULL: not shared */
    int first, count;     /* this operation's rows in a shared result */
};

void conn_release_result(PGresult *result, int *result_refs);

/* CONN_CONFIGURING: the session gets its settings. */
enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_CONFIGURING, CONN_READY };

/* A response that the server still has to send. Responses arrive in the order of the requests. */
struct pending {
    enum { PENDING_PREPARE, PENDING_RESULT, PENDING_SYNC } kind;
    struct op *op; /* a list (by `next`) if executed together; NULL: prepared at connect */
    const struct statement *statement;
    bool together; /* PENDING_PREPARE: which form of the statement */
};

struct conn {
    struct watch watch;
    struct timer timer; /* reconnect delay, connect timeout or response timeout, by state */
    struct db *db;
    PGconn *pg;
    enum conn_state state;
    enum lane lane;
    struct pending *pending; /* a ring buffer */
    unsigned pending_head, pending_count, pending_cap;
    PGresult *held; /* the result of the statement at the head, until libpq says that it is complete */
    struct op *uncommitted; /* a write that succeeded; it commits at the sync that follows */
    PGresult *uncommitted_result;
    struct op *queue, *queue_last; /* not sent yet: the window is full, or reads wait to be batched */
    int queued;
    struct op *resend; /* aborted by another statement's error: each is resent alone */
    struct prepared {
        bool form[2]; /* alone, together */
    } *prepared;      /* by statement index */
    bool preparing;   /* statements wait until those of the lane are prepared */
    bool unsynced, unflushed;
    const char *leaving; /* why to send nothing more, and reconnect when all responses are there; or NULL */
    enum hosts_cause leaving_cause;
    bool busy;       /* slow lane: leased */
    bool lease_lost; /* slow lane: lost during the lease, whose statements must not reach the next session */
    bool poisoned;   /* slow lane: the lease ended inside a transaction; roll back before the next one */
    struct hosts_walk walk; /* the server of this connection or attempt */
    bool rotating;          /* down, and the next attempt follows at once */
    bool read_only;         /* the server takes no writes */
    int failures;           /* connection attempts that failed in a row */
    int rounds;             /* rounds of attempts, each over all servers, that failed in a row */
    enum hosts_cause cause; /* why it is not ready; CAUSE_NONE if it is */
    char farewell[200];     /* why the server ends the session, if it said so */
    int64_t active_us; /* when the server last sent something, or when the first response became pending */
    int batches;       /* pending syncs */
    int in_flight;     /* ops sent and not answered */
    int grouped;       /* those of them that are writes of a statement with a form for several requests */
    int abandoned;     /* those of them whose request stopped waiting */
};

void conn_init(struct conn *c, struct db *db, enum lane lane);
void conn_connect(struct conn *c);
void conn_close(struct conn *c);

bool conn_usable(const struct conn *c);
/* Stops using the connection: it is lost as soon as the pending responses have arrived. */
void conn_leave(struct conn *c, enum hosts_cause cause, const char *why);
/* The request of a statement that was sent stops waiting. A connection for writes on which only such
 * statements are left, and which is silent, is closed: each could hold up others for its whole time-out. */
void conn_abandon(struct op *op);
/* Sends the statement, or queues it: reads until conn_flush batches them, writes that can be executed
 * together while others of them are in flight, and others while the window is full. A queued statement whose
 * request stops waiting never runs. On an error the caller keeps the operation. ERR_DATABASE_UNAVAILABLE:
 * nothing ran. ERR_OUTCOME_UNKNOWN: a write may have run. */
enum err conn_send(struct conn *c, struct op *op) must_check;
/* Ends the transaction of the statements sent before, if there are any. */
void conn_end_batch(struct conn *c);
/* Ends the batch and writes it to the socket. Called once per turn of the loop. */
void conn_flush(struct conn *c);

#endif

/* Shared by conn*.c. */
#ifndef DAYBOOK_DB_CONN_INTERNAL_H
#define DAYBOOK_DB_CONN_INTERNAL_H

#include "db/conn.h"

enum {
    TOGETHER_MAX = 64,                 /* requests in one execution */
    ABANDONED_GRACE_US = 1000 * 1000,  /* of silence, while nobody waits for the statements in flight */
    ANSWER_GRACE_US = 5 * 1000 * 1000, /* after statement_timeout, before the server counts as dead */
};

extern const char *const conn_lane_names[];

/* Closes the connection, fails its operations, and schedules a reconnect. `why` may have several lines. */
void conn_lost(struct conn *c, enum hosts_cause cause, const char *why);
/* The same with what libpq says. */
void conn_broken(struct conn *c);

/* If statements are left that nobody waits for, looks again whether they hold up the connection. */
void conn_watch_abandoned(struct conn *c);

/* Keeps the message for the log if it says that the server ends the session. */
void conn_farewell(struct conn *c, const char *text);

/* Replaces the watched socket: see conn_connect.c. False: no descriptor is left. */
bool conn_watch(struct conn *c, uint32_t events);
void conn_unwatch(struct conn *c);
/* Continues an attempt to connect, when its socket is ready. */
void conn_continue(struct conn *c);
/* The only function that changes the state. */
void conn_set_state(struct conn *c, enum conn_state state);

/* Logs that the connection was lost, or was established. Connections of a loop that share their fate within
 * a moment get one line. */
void conn_log_lost(struct conn *c, const char *why);
void conn_log_connected(struct conn *c);
void conn_log_timer(struct timer *t);
void conn_log_flush(struct db *db);

/* Sends the preparation of one form of the statement unless it is prepared. False: libpq failed. */
bool conn_prepare(struct conn *c, struct op *op, const struct statement *st, bool together);
/* Sends SQL text of the service itself, at once. `done` gets the connection as op->user. False: libpq failed.
 */
bool conn_send_plain(struct conn *c, const char *sql, void (*done)(struct op *, PGresult *, enum err));
void conn_push_pending(struct conn *c, struct pending o);
struct pending conn_pop_pending(struct conn *c);
void conn_enqueue(struct conn *c, struct op *op);
/* Removes the first queued operation. The queue must not be empty. */
struct op *conn_dequeue(struct conn *c);
/* Sends queued operations while the window has room, and drops those whose request stopped waiting. */
void conn_send_queued(struct conn *c);
void conn_receive(struct conn *c);

/* Whether it is a write that can be executed together with others: what arrives while one is in flight on the
 * connection becomes the next execution, and shares its commit. */
bool conn_is_grouped(const struct op *op);
/* Counts it as in flight on the connection, or no longer. */
void conn_set_sent(struct conn *c, struct op *op, bool sent);

/* Reports the outcome to the waiting request, if any, and frees the operation. */
void conn_end_op(struct conn *c, struct op *op, PGresult *result, enum err err);
/* The same for every operation of a list. */
void conn_fail_ops(struct conn *c, struct op *list, enum err err);
/* Takes the write that succeeded and waits for its commit. */
struct op *conn_take_uncommitted(struct conn *c);

#endif

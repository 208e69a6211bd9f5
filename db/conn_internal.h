/* What the files of a connection (conn*.c) share. */
#ifndef DAYBOOK_DB_CONN_INTERNAL_H
#define DAYBOOK_DB_CONN_INTERNAL_H

#include "db/conn.h"

enum {
    MOST_TOGETHER = 64, /* reads in one execution */
    ANSWER_GRACE_US =
        5 * 1000 * 1000, /* beyond the statement time-out: then the server, or the way to it, is dead */
};

extern const char *const lane_names[];

/* Ends it, tells all who wait, and connects again later. */
void conn_lost(struct conn *c, const char *why);

/* Of the statement's two forms; true at once when it is prepared. */
bool conn_prepare(struct conn *c, struct op *op, const struct statement *st, bool together);
void conn_owe(struct conn *c, struct owed o);
struct owed conn_unowe(struct conn *c);
/* The first of those that are not sent; there must be one. */
struct op *conn_dequeue(struct conn *c);
/* Sends what the window has room for; what nobody waits for is dropped. */
void conn_send_queued(struct conn *c);
void conn_receive(struct conn *c);

/* Tells whoever waits for it, and lets it go; of a list, all. */
void conn_end_op(struct conn *c, struct op *op, PGresult *result, enum err err);
void conn_fail_ops(struct conn *c, struct op *list, enum err err);
/* The write that was done and waits for its commit. */
struct op *conn_take_done(struct conn *c);

#endif

/* A statement of the SQL files here, as tools/embed.awk makes it. */
#ifndef DAYBOOK_DB_STATEMENT_H
#define DAYBOOK_DB_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Where it runs: with other requests' reads on one pipelined connection, on one of the write connections, or
 * on a connection of its own because it may take long. Inside a transaction it runs on the transaction's
 * connection, whatever this says. */
enum lane { LANE_READ, LANE_WRITE, LANE_SLOW };

/* What its rows become: one object (none: 404), a page {items, next_cursor}, or nothing. */
enum shape { SHAPE_ONE, SHAPE_LIST, SHAPE_NONE };

struct statement {
    const char *name, *sql;
    /* The same for several requests in one execution: every parameter is a text[] with one item a request,
     * and the first column, _n, says to which request (from 1) the row belongs. NULL: there is no such form.
     */
    const char *together_name, *together;
    int index;
    enum lane lane;
    enum shape shape;
    bool owned; /* the first parameter is the owner */
    int param_count;
    const char *const *params;
};

extern const struct statement *const statements[];
extern const int statements_count;

#include "statements.gen.h"

#endif

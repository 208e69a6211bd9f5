/* Asks PostgreSQL for the result columns of every statement. */
#ifndef DAYBOOK_DB_DESCRIBE_H
#define DAYBOOK_DB_DESCRIBE_H

#include <stdbool.h>

#include "core/base/arena.h"

/* The columns of a statement's result. */
struct described {
    int count;
    const char **names;
};

/* Prepares every statement without running it. *described has one item per statement, by its index. If
 * PostgreSQL rejects a statement, or a function that makes rows for one does not fit its table, prints one
 * line on stderr and returns false. */
bool describe_statements(const char *database_url, struct arena *arena, const struct described **described);

#endif

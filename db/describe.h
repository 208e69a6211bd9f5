/* What PostgreSQL says of the statements: the columns of their results. */
#ifndef DAYBOOK_DB_DESCRIBE_H
#define DAYBOOK_DB_DESCRIBE_H

#include <stdbool.h>

#include "core/base/arena.h"

/* The columns of a statement's result. */
struct described {
    int count;
    const char **names;
};

/* Prepares every statement without running it; *described has one item a statement, by its index. False: one
 * line on stderr says which statement PostgreSQL refuses. */
bool describe_statements(const char *database_url, struct arena *arena, const struct described **described);

#endif

/* The columns that C code reads from rows, as handles that the compiler checks.
 *
 *     COLUMNS(block, id, takeaway, total);
 *     ... rows_text(r, 0, &block.takeaway) ...
 *
 * A handle is an address inside its set. At start, the service looks up the position of every column of a
 * set in the result of each statement that uses it (server/dispatch/query.h). */
#ifndef DAYBOOK_DB_COLUMN_H
#define DAYBOOK_DB_COLUMN_H

#include <stddef.h>

struct column {
    char unused;
};

struct columns {
    const char *names; /* "id, takeaway, total" */
    const struct column *first;
    size_t count;
};

/* The positions of the columns of a set in the result of one statement. */
struct column_map {
    const struct columns *columns; /* NULL: C code reads none */
    const short *at;
    short cursor[2]; /* positions of _cursor_1 and _cursor_2; -1: absent */
};

/* clang-format off */
#define COLUMNS(set, ...) \
    static const struct { struct column __VA_ARGS__; } set; \
    static const struct columns set##_columns = { #__VA_ARGS__, (const struct column *)&set, sizeof(set) }
/* The same for a header, when several files use the set. */
#define SHARED_COLUMNS(set, ...) \
    extern const struct set##_handles { struct column __VA_ARGS__; } set; \
    __attribute__((weak)) const struct set##_handles set; \
    extern const struct columns set##_columns; \
    __attribute__((weak)) const struct columns set##_columns = { #__VA_ARGS__, (const struct column *)&set, sizeof(set) }
/* clang-format on */

#endif

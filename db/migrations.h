/* The migrations that are built into the binary, made from migrations/ by tools/embed.awk. */
#ifndef DAYBOOK_DB_MIGRATIONS_H
#define DAYBOOK_DB_MIGRATIONS_H

struct migration {
    int number; /* 1, 2, 3 … without a gap */
    const char *name, *sql;
};

extern const struct migration migrations[];
extern const int migrations_count;

#endif

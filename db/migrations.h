/* The migrations built into the binary, generated from migrations/ by tools/embed.awk. */
#ifndef DAYBOOK_DB_MIGRATIONS_H
#define DAYBOOK_DB_MIGRATIONS_H

struct migration {
    int number; /* 1, 2, 3 … without gaps */
    const char *name, *sql;
};

extern const struct migration migrations[];
extern const int migrations_count;

#endif

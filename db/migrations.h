/* The migrations built into the binary, generated from migrations/ by tools/embed.awk. */
#ifndef DAYBOOK_DB_MIGRATIONS_H
#define DAYBOOK_DB_MIGRATIONS_H

struct migration {
    int number; /* 1, 2, 3 … without gaps */
    /* A binary that knows the migrations up to this one can use the schema after it: "-- compatible-from: N"
     * in the file. Without that line it is `number`: only binaries that know the migration. */
    int compatible_from;
    const char *name, *sql;
};

extern const struct migration migrations[];
extern const int migrations_count;

/* What exists when all of them are applied, one per line: db/objects.txt. */
extern const char migrations_objects[];

#endif

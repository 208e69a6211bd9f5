/* What PostgreSQL says about the result of a statement. */
#ifndef DAYBOOK_DB_DESCRIBE_H
#define DAYBOOK_DB_DESCRIBE_H

/* The columns of a statement's result. */
struct described {
    int count;
    const char **names;
};

#endif

/* The command `daybookd sql`: prints statements. */
#ifndef DAYBOOK_DB_STATEMENT_PRINT_H
#define DAYBOOK_DB_STATEMENT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

/* One line per statement: name, lane, shape, and the parameters in the order of $1, $2, ... */
void statement_print_list(FILE *to);

/* The text as it is sent to PostgreSQL, after a comment that names its parameters. NAME_together is the form
 * for several requests. False when there is no statement of that name. */
bool statement_print(FILE *to, const char *name);

#endif

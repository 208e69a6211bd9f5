/* The field tables of all routes as tab-separated text, for `daybookd fields`. */
#ifndef DAYBOOK_SERVER_FIELDS_PRINT_H
#define DAYBOOK_SERVER_FIELDS_PRINT_H

#include <stdio.h>

/* Prints a line of column names, then a line for each route (with the field "-"), followed by a line for each
 * of its fields. Fields of objects have dotted names: `outcome.metric`, `fees[].symbol` in a list of objects,
 * `marks{}` for the values and `marks{name}` for the names of a map. An empty column means no limit. */
void fields_print(FILE *to);

#endif

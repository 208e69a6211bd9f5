/* The index of all routes, and the match of a request. */
#ifndef DAYBOOK_SERVER_DISPATCH_ROUTE_H
#define DAYBOOK_SERVER_DISPATCH_ROUTE_H

#include "server/dispatch/call.h"

/* The tables of all handlers, NULL-terminated; defined in handlers/routes.c. */
extern const struct route *const route_tables[];

/* Builds the index; aborts if a path is too long or there are too many routes. Call it before any loop
 * starts. */
void route_init(void);
int route_count(void);
const struct route *route_at(int index);
int route_index(const struct route *r); /* route_count() if r is NULL */

struct route_match {
    const struct route *route; /* NULL: unknown path or method */
    struct pairs path;         /* the values of its {parameters} */
    const char *allow;         /* if the method is unknown: "GET, HEAD, OPTIONS"; NULL: unknown path */
};

struct route_match route_find(enum method method, const struct uri *uri, struct arena *arena);

#endif

/* The table of all routes, and which of them a request means. */
#ifndef DAYBOOK_SERVER_DISPATCH_ROUTE_H
#define DAYBOOK_SERVER_DISPATCH_ROUTE_H

#include "server/call.h"

/* The tables of handlers/, NULL-terminated: written in handlers/routes.c. */
extern const struct route *const route_tables[];

/* Builds the index; aborts when a table cannot be right. Before any loop starts. */
void route_init(void);
int route_count(void);
const struct route *route_at(int index);
int route_index(const struct route *r); /* of NULL: route_count() */

struct route_match {
    const struct route *route; /* NULL: no such path, or not with this method */
    struct pairs path;         /* the values of its {parameters} */
    const char *allow;         /* the methods that the path takes, "GET, HEAD, OPTIONS"; NULL: no such path */
};

struct route_match route_find(enum method method, const struct uri *uri, struct arena *arena);

#endif

/* The route tables of all resources, as dispatch searches them. */
#include "handlers/routes.h"

#include "server/http/route.h"

const struct route *const route_tables[] = {
    meta_routes,
    lesson_routes,
    NULL,
};

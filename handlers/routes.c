/* The route tables of all resources, as dispatch searches them. */
#include "handlers/routes.h"

#include "server/http/route.h"

const struct route *const route_tables[] = {
    meta_routes,     lesson_routes,      skill_routes, deployment_routes,    context_routes,
    snapshot_routes, materialize_routes, tick_routes,  trade_history_routes, NULL,
};

/* The route tables of all resources. */
#ifndef DAYBOOK_HANDLERS_ROUTES_H
#define DAYBOOK_HANDLERS_ROUTES_H

#include "server/call.h"

extern const struct route meta_routes[];
extern const struct route lesson_routes[];

#endif

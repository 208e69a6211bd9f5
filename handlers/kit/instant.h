/* Checks of instants that clients send. */
#ifndef DAYBOOK_HANDLERS_KIT_INSTANT_H
#define DAYBOOK_HANDLERS_KIT_INSTANT_H

#include "server/dispatch/call.h"

#define INSTANT_AHEAD_US INT64_C(86400000000) /* tolerated clock difference: a day */
#define INSTANT_AHEAD    "is more than a day ahead of the server's clock"

/* Reports a fault of the field if the instant is too far in the future. `instant` NULL: not given, OK. */
enum err instant_check(struct call *c, const char *field, const char *instant) must_check;

#endif

/* Instants on the caller's clock. */
#ifndef DAYBOOK_HANDLERS_KIT_INSTANT_H
#define DAYBOOK_HANDLERS_KIT_INSTANT_H

#include "server/call.h"

#define INSTANT_AHEAD_US INT64_C(86400000000) /* clocks differ, but not by more than a day */
#define INSTANT_AHEAD    "is more than a day ahead of the server's clock"

/* A fault of the field when the instant is yet to come; NULL: none was given. */
enum err instant_check(struct call *c, const char *field, const char *instant) must_check;

#endif

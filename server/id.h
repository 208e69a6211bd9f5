/* New identifiers: UUIDv7 from the clock and the kernel's random numbers. */
#ifndef DAYBOOK_SERVER_ID_H
#define DAYBOOK_SERVER_ID_H

#include "core/base/arena.h"

const char *id_new(struct arena *arena);

#endif

/* New identifiers: UUIDv7 from the clock and the kernel's random numbers. */
#include "server/id.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/uuid.h"
#include "server/loop.h"

enum { POOL_BYTES = 1000 };

const char *id_new(struct arena *arena)
{
    /* One system call serves a hundred identifiers. */
    static _Thread_local unsigned char pool[POOL_BYTES];
    static _Thread_local size_t left;
    if (left < UUID_RANDOM_BYTES) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            abort();
        left = sizeof pool;
    }
    left -= UUID_RANDOM_BYTES;
    char *text = arena_alloc(arena, UUID_SIZE);
    uuid_v7(loop_wall_us() / 1000, pool + left, text);
    return text;
}

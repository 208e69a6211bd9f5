/* New identifiers: UUIDv7 from the clock and the kernel's random numbers. */
#include "server/id.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/uuid.h"
#include "server/loop.h"

enum { POOL_BYTES = 1000, PARTS = 4096 /* of a millisecond */, MAX_BACK = 1000 * PARTS };

/* In parts of a millisecond, strictly increasing on this thread, so that ids sort in the order of creation:
 * the trades of one tick, for example. Goes back only if the clock was set back by more than a second. */
static int64_t next_instant(void)
{
    static _Thread_local int64_t last;
    int64_t now = loop_wall_us() * PARTS / 1000;
    last = now > last || now < last - MAX_BACK ? now : last + 1;
    return last;
}

const char *id_new(struct arena *arena)
{
    /* One system call provides the random bytes of a hundred ids. */
    static _Thread_local unsigned char pool[POOL_BYTES];
    static _Thread_local size_t left;
    if (left < UUID_RANDOM_BYTES) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            abort();
        left = sizeof pool;
    }
    left -= UUID_RANDOM_BYTES;
    int64_t instant = next_instant();
    pool[left] = (unsigned char)(instant % PARTS >> 8); /* uuid_v7 uses the low half of this byte */
    pool[left + 1] = (unsigned char)(instant & 0xff);
    char *text = arena_alloc(arena, UUID_SIZE);
    uuid_v7(instant / PARTS, pool + left, text);
    return text;
}

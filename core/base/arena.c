/* An arena: memory of one request, handed out piece by piece and released at once. */
#include "core/base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Blocks are of two sizes, and a thread keeps so many of each: a request takes two or three, and malloc is
 * slow at their sizes. None where the sanitizer is to see the use of what was released. */
enum { SMALL, LARGE, SIZES };
static const struct {
    size_t bytes;
    int most;
} blocks[SIZES] = {
#ifdef DAYBOOK_SANITIZED
    [SMALL] = { 4096, 0 },
    [LARGE] = { 32768, 0 },
#else
    [SMALL] = { 4096, 64 },
    [LARGE] = { 32768, 4 },
#endif
};

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct arena_hook {
    struct arena_hook *next;
    void (*release)(void *what);
    void *what;
};

static _Thread_local struct {
    struct arena_block *first;
    int count;
} spare[SIZES];

static size_t room(int size)
{
    return blocks[size].bytes - sizeof(struct arena_block);
}

static struct arena_block *block_new(size_t size)
{
    struct arena_block *b = memory_alloc(sizeof *b + size);
    b->used = 0;
    b->size = size;
    return b;
}

static struct arena_block *block_of(int size)
{
    struct arena_block *b = spare[size].first;
    if (!b)
        return block_new(room(size));
    spare[size].first = b->next;
    spare[size].count--;
    b->used = 0;
    return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 4)
        memory_exhausted(size); /* a size no caller can mean: an overflow upstream */
    size = (size + align - 1) & ~(align - 1);
    struct arena_block *b = a->blocks;
    if (b && b->size - b->used >= size) {
        void *p = b->bytes + b->used;
        b->used += size;
        return p;
    }
    if (size > room(LARGE) / 2) { /* it gets a block of its own, behind the one still being filled */
        struct arena_block *own = block_new(size);
        own->used = size;
        own->next = b ? b->next : NULL;
        if (b)
            b->next = own;
        else
            a->blocks = own;
        return own->bytes;
    }
    struct arena_block *fresh = block_of(size > room(SMALL) / 2 ? LARGE : SMALL);
    fresh->next = b;
    fresh->used = size;
    a->blocks = fresh;
    return fresh->bytes;
}

void *arena_zero(struct arena *a, size_t size)
{
    return memset(arena_alloc(a, size), 0, size);
}

char *arena_copy(struct arena *a, const void *bytes, size_t len)
{
    char *p = arena_alloc(a, len + 1);
    if (len)
        memcpy(p, bytes, len);
    p[len] = '\0';
    return p;
}

char *arena_text(struct arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text));
}

char *arena_vfmt(struct arena *a, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        abort();
    char *p = arena_alloc(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, fmt, args);
    return p;
}

char *arena_fmt(struct arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *p = arena_vfmt(a, fmt, args);
    va_end(args);
    return p;
}

/* True: it is kept for the next arena. */
static bool spared(struct arena_block *b)
{
    for (int size = 0; size < SIZES; size++)
        if (b->size == room(size) && spare[size].count < blocks[size].most) {
            b->next = spare[size].first;
            spare[size].first = b;
            spare[size].count++;
            return true;
        }
    return false;
}

void arena_on_release(struct arena *a, void (*release)(void *what), void *what)
{
    struct arena_hook *hook = arena_alloc(a, sizeof *hook);
    *hook = (struct arena_hook){ a->hooks, release, what };
    a->hooks = hook;
}

void arena_run_hooks(struct arena *a)
{
    struct arena_hook *hook = a->hooks;
    a->hooks = NULL;
    for (; hook; hook = hook->next)
        hook->release(hook->what);
}

void arena_release(struct arena *a)
{
    arena_run_hooks(a);
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (!spared(b))
            free(b);
    }
    a->blocks = NULL;
}

void arena_thread_end(void)
{
    for (int size = 0; size < SIZES; size++) {
        for (struct arena_block *b = spare[size].first, *next; b; b = next) {
            next = b->next;
            free(b);
        }
        spare[size].first = NULL;
        spare[size].count = 0;
    }
}

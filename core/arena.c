/* An arena: memory of one request, handed out piece by piece and released at once. */
#include "core/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread keeps so many blocks: a request takes two or three, and malloc is slow at their size. None where
 * the sanitizer is to see the use of what was released. */
#ifdef DAYBOOK_SANITIZED
enum { MOST_SPARE = 0 };
#else
enum { MOST_SPARE = 64 };
#endif
enum { BLOCK_BYTES = 4096 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

enum { ORDINARY = BLOCK_BYTES - sizeof(struct arena_block) };

static _Thread_local struct arena_block *spare; /* all of them ordinary */
static _Thread_local int spare_count;

static struct arena_block *block_new(size_t size)
{
    struct arena_block *b = spare;
    if (b && b->size == size) {
        spare = b->next;
        spare_count--;
        b->used = 0;
        return b;
    }
    b = malloc(sizeof *b + size);
    if (!b) {
        fputs("daybookd: out of memory\n", stderr);
        abort();
    }
    b->used = 0;
    b->size = size;
    return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 4)
        abort(); /* a size no caller can mean: an overflow upstream */
    size = (size + align - 1) & ~(align - 1);
    struct arena_block *b = a->blocks;
    if (b && b->size - b->used >= size) {
        void *p = b->bytes + b->used;
        b->used += size;
        return p;
    }
    if (size > ORDINARY / 2) { /* a large piece gets a block of its own, behind the one still being filled */
        struct arena_block *large = block_new(size);
        large->used = size;
        large->next = b ? b->next : NULL;
        if (b)
            b->next = large;
        else
            a->blocks = large;
        return large->bytes;
    }
    struct arena_block *fresh = block_new(ORDINARY);
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

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (b->size == ORDINARY && spare_count < MOST_SPARE) {
            b->next = spare;
            spare = b;
            spare_count++;
        } else {
            free(b);
        }
    }
    a->blocks = NULL;
}

void arena_thread_end(void)
{
    for (struct arena_block *b = spare, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    spare = NULL;
    spare_count = 0;
}

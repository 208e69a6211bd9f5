/* Memory that is never NULL: when there is none, the process ends with a message. */
#include "core/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_exhausted(size_t bytes)
{
    char text[64]; /* stderr has no buffer, so that this allocates nothing */
    snprintf(text, sizeof text, "daybookd: out of memory: %zu bytes\n", bytes);
    fputs(text, stderr);
    abort();
}

/* A size of 0 may be NULL. */
static void *checked(void *memory, size_t bytes)
{
    if (!memory && bytes)
        memory_exhausted(bytes);
    return memory;
}

void *memory_alloc(size_t bytes)
{
    return checked(malloc(bytes), bytes);
}

void *memory_zero(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all))
        memory_exhausted((size_t)-1);
    return checked(calloc(count, bytes), all);
}

void *memory_resize(void *memory, size_t bytes)
{
    return checked(realloc(memory, bytes), bytes);
}

char *memory_text(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    return memcpy(memory_alloc(bytes), text, bytes);
}

/* Memory that is never NULL: when there is none, the process ends with a message. */
#ifndef DAYBOOK_CORE_BASE_MEMORY_H
#define DAYBOOK_CORE_BASE_MEMORY_H

#include <stddef.h>

/* The limits on bodies and on requests in flight keep a process far from the point where malloc fails. A
 * process that gets there cannot answer anybody, and a supervisor starts it again. Free it with free(). */
void *memory_alloc(size_t bytes);                /* not cleared */
void *memory_zero(size_t count, size_t bytes);   /* cleared: room for `count` things of that size */
void *memory_resize(void *memory, size_t bytes); /* as realloc does */
char *memory_text(const char *text);             /* a copy */
_Noreturn void memory_exhausted(size_t bytes);   /* prints the message and aborts */

#endif

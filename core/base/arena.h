/* An arena: memory of one request, handed out piece by piece and released at once. */
#ifndef DAYBOOK_CORE_BASE_ARENA_H
#define DAYBOOK_CORE_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;
struct arena_hook;
struct arena {
    struct arena_block *blocks; /* newest first */
    struct arena_hook *hooks;   /* newest first */
};

/* All of these return memory that lives until arena_release. They never return NULL: see core/base/memory.h.
 */
void *arena_alloc(struct arena *a, size_t size); /* aligned for any type, not cleared */
void *arena_zero(struct arena *a, size_t size);
char *arena_copy(struct arena *a, const void *bytes, size_t len); /* adds a terminating NUL */
char *arena_text(struct arena *a, const char *text);
char *arena_fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vfmt(struct arena *a, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Calls `release(what)` once, when the arena is released: for what lives as long as the arena but was not
 * allocated from it. The newest is called first. */
void arena_on_release(struct arena *a, void (*release)(void *what), void *what);
/* Runs the hooks now, newest first, and keeps the arena's own memory. */
void arena_run_hooks(struct arena *a);

/* Runs the hooks and frees everything; the arena can be used again. */
void arena_release(struct arena *a);

/* Frees the blocks cached by this thread. */
void arena_thread_end(void);

#endif

/* Coroutines: straight-line code that waits without blocking its event loop. */
#ifndef DAYBOOK_SERVER_CORO_H
#define DAYBOOK_SERVER_CORO_H

#include <stdbool.h>

struct coro;

/* Runs `run(arg)` on its own stack until it ends or waits. The calling thread reuses stacks. */
void coro_start(void (*run)(void *arg), void *arg);
/* The running coroutine; NULL outside of a coroutine. */
struct coro *coro_self(void);
/* Suspends the coroutine until the same thread resumes it. Returns false outside of a coroutine. Prefer
 * task_wait (server/task.h), which can be cancelled. */
bool coro_wait(void);
void coro_resume(struct coro *c);
/* Frees the calling thread's spare stacks. */
void coro_release_spares(void);

#endif

/* Coroutines: straight-line code that waits without blocking its event loop. */
#ifndef DAYBOOK_SERVER_CORO_H
#define DAYBOOK_SERVER_CORO_H

#include <stdbool.h>

struct coro;

/* Runs `run(arg)` on a stack of its own until it ends or waits. Stacks are kept for reuse by the calling
 * thread. */
void coro_start(void (*run)(void *arg), void *arg);
/* Inside a coroutine: itself. Outside: NULL. */
struct coro *coro_self(void);
/* Waits until another part of the same thread resumes it. False: it is called outside of a coroutine. Use
 * task_wait (server/task.h), which also says what is waited for. */
bool coro_wait(void);
void coro_resume(struct coro *c);
/* Frees the calling thread's spare stacks. */
void coro_release_spares(void);

#endif

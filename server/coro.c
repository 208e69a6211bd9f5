/* Coroutines: straight-line code that waits without blocking its event loop. */
#include "server/coro.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef DAYBOOK_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

#include "core/base/memory.h"

/* Only touched pages use memory. */
enum { STACK_BYTES = 256 * 1024, MAX_SPARES = 32 };

struct coro {
    ucontext_t self, back;
    char *stack; /* the lowest page is a guard page */
    size_t stack_bytes;
    void (*run)(void *); /* NULL: ended */
    void *arg;
    struct coro *next;
#ifdef DAYBOOK_SANITIZED
    void *fake;
    const void *back_stack;
    size_t back_bytes;
#endif
};

static _Thread_local struct coro *running, *spares;
static _Thread_local int spare_count;

/* ASan must know which stack is in use. */
static void switch_in(struct coro *c)
{
#ifdef DAYBOOK_SANITIZED
    void *fake;
    __sanitizer_start_switch_fiber(&fake, c->stack, c->stack_bytes);
    swapcontext(&c->back, &c->self);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    swapcontext(&c->back, &c->self);
#endif
}

static void switch_out(struct coro *c)
{
#ifdef DAYBOOK_SANITIZED
    __sanitizer_start_switch_fiber(&c->fake, c->back_stack, c->back_bytes);
    swapcontext(&c->self, &c->back);
    __sanitizer_finish_switch_fiber(c->fake, &c->back_stack, &c->back_bytes);
#else
    swapcontext(&c->self, &c->back);
#endif
}

/* makecontext can pass only ints, so the coroutine is found through `running`. The for loop lets a
 * finished coroutine be reused without a new context. */
static void trampoline(void)
{
    struct coro *c = running;
#ifdef DAYBOOK_SANITIZED
    __sanitizer_finish_switch_fiber(NULL, &c->back_stack, &c->back_bytes);
#endif
    for (;;) {
        c->run(c->arg);
        c->run = NULL;
        switch_out(c);
    }
}

static struct coro *coro_new(void)
{
    struct coro *c = memory_zero(1, sizeof *c);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) != 0 || getcontext(&c->self) != 0)
        memory_exhausted(STACK_BYTES + page);
    c->stack = stack + page;
    c->stack_bytes = STACK_BYTES;
    c->self.uc_stack.ss_sp = c->stack;
    c->self.uc_stack.ss_size = STACK_BYTES;
    c->self.uc_link = NULL;
    makecontext(&c->self, trampoline, 0);
    return c;
}

static void coro_free(struct coro *c)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(c->stack - page, STACK_BYTES + page);
    free(c);
}

void coro_resume(struct coro *c)
{
    struct coro *outer = running;
    running = c;
    switch_in(c);
    running = outer;
    if (c->run)
        return; /* it is waiting, not finished */
    if (spare_count < MAX_SPARES) {
        c->next = spares;
        spares = c;
        spare_count++;
    } else {
        coro_free(c);
    }
}

void coro_start(void (*run)(void *arg), void *arg)
{
    struct coro *c = spares;
    if (c) {
        spares = c->next;
        spare_count--;
    } else {
        c = coro_new();
    }
    c->run = run;
    c->arg = arg;
    coro_resume(c);
}

struct coro *coro_self(void)
{
    return running;
}

bool coro_wait(void)
{
    struct coro *c = running;
    if (!c)
        return false;
    switch_out(c);
    return true;
}

void coro_release_spares(void)
{
    for (struct coro *c = spares, *next; c; c = next) {
        next = c->next;
        coro_free(c);
    }
    spares = NULL;
    spare_count = 0;
}

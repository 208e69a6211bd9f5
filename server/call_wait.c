/* Calls that wait for something else than the database. */
#include "server/call.h"
#include "server/coro.h"

enum err call_wait(struct call *c, struct call_wait *w)
{
    w->call = c;
    c->wait = w;
    c->coro = coro_self();
    coro_wait();
    return w->why;
}

void call_wake(struct call_wait *w, enum err why)
{
    struct coro *waiting = w->call->coro;
    w->why = why;
    w->call->coro = NULL;
    w->call->wait = NULL;
    coro_resume(waiting);
}

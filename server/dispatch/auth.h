/* Authentication: API keys, their owners and roles, and the local owner when no key exists. */
#ifndef DAYBOOK_SERVER_DISPATCH_AUTH_H
#define DAYBOOK_SERVER_DISPATCH_AUTH_H

#include "server/dispatch/call.h"

struct auth *auth_open(struct loop *loop);
void auth_close(struct auth *auth);
bool auth_ready(const struct auth *auth);

/* Rejects what the cached keys can decide: a missing key, or a role that is too low. Never waits. */
enum err auth_early(struct call *c) must_check;
/* Sets owner and role, then calls `next`: immediately, or after a reload if the key is not in the cache. */
void auth_check(struct call *c, void (*next)(struct call *c, enum err err));

#endif

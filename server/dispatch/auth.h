/* Authentication: API keys, their owners and roles, and the local owner where no key exists. */
#ifndef DAYBOOK_SERVER_DISPATCH_AUTH_H
#define DAYBOOK_SERVER_DISPATCH_AUTH_H

#include "server/call.h"

struct auth *auth_open(struct loop *loop);
void auth_close(struct auth *auth);
bool auth_ready(const struct auth *auth);

/* Refuses what needs no look-up: a request without a key where one is needed, or with too weak a role. */
enum err auth_early(struct call *c) must_check;
/* Sets owner and role, then calls `next`: at once, or when a key that is not known here was looked up. */
void auth_check(struct call *c, void (*next)(struct call *c, enum err err));

#endif

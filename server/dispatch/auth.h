/* Authentication: API keys, their owners and roles, and the local owner when no key exists. */
#ifndef DAYBOOK_SERVER_DISPATCH_AUTH_H
#define DAYBOOK_SERVER_DISPATCH_AUTH_H

#include "server/dispatch/call.h"

struct auth *auth_open(struct loop *loop);
void auth_close(struct auth *auth);
bool auth_ready(const struct auth *auth);

/* Demands this key of the configuration. A wrong one is limited and logged as an unknown API key is. */
enum err auth_configured_key(struct call *c, const char *key) must_check;
/* Rejects what the loop's keys can decide before the address of the client is known: a missing key, a role
 * that is too low, a key beyond its rate. Never waits. */
enum err auth_early(struct call *c) must_check;
/* Sets owner and role, then calls `next`: immediately, or after a lookup if the key is unknown. */
void auth_check(struct call *c, void (*next)(struct call *c, enum err err));

#endif

/* The write policy in routes that store what names an observation type. The statement asks the SQL function
 * write_allowed, with the built-in policy as a parameter. */
#ifndef DAYBOOK_HANDLERS_KIT_POLICY_H
#define DAYBOOK_HANDLERS_KIT_POLICY_H

#include "server/dispatch/call.h"

/* The parameter `default_types`: the built-in policy. */
const char *policy_default_types(struct arena *arena);

/* ERR_WRITE_DENIED with the type as detail, counted in the metrics. `listed`: the policy has the type. */
enum err policy_denied(struct call *c, const char *type, bool listed) must_check;

#endif

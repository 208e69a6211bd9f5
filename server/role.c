/* The roles of API keys. */
#include "server/role.h"

#include <string.h>

static const char *const names[] = {
    [ROLE_PUBLIC] = "public", [ROLE_READER] = "reader", [ROLE_RESEARCHER] = "researcher",
    [ROLE_AGENT] = "agent",   [ROLE_ADMIN] = "admin",
};

const char *role_name(enum role role)
{
    return names[role];
}

enum role role_parse(const char *name)
{
    for (enum role role = ROLE_READER; role <= ROLE_ADMIN; role++)
        if (strcmp(name, names[role]) == 0)
            return role;
    return ROLE_PUBLIC;
}

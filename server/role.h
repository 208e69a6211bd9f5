/* The roles of API keys. */
#ifndef DAYBOOK_SERVER_ROLE_H
#define DAYBOOK_SERVER_ROLE_H

/* Each role includes the permissions of the roles before it. */
enum role { ROLE_PUBLIC, ROLE_READER, ROLE_RESEARCHER, ROLE_AGENT, ROLE_ADMIN };

const char *role_name(enum role role);
/* Returns ROLE_PUBLIC if the name is unknown. */
enum role role_parse(const char *name);

#endif

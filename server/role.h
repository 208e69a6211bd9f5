/* What a key may do. */
#ifndef DAYBOOK_SERVER_ROLE_H
#define DAYBOOK_SERVER_ROLE_H

/* Each role may do what the ones before it may. */
enum role { ROLE_PUBLIC, ROLE_READER, ROLE_RESEARCHER, ROLE_AGENT, ROLE_ADMIN };

const char *role_name(enum role role);
/* ROLE_PUBLIC: there is no such role. */
enum role role_parse(const char *name);

#endif

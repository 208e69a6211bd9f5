/* Secrets in files. */
#ifndef DAYBOOK_SERVER_SECRET_H
#define DAYBOOK_SERVER_SECRET_H

#include <stdbool.h>

/* Reads a secret of one line and removes the white space around it. It lives as long as the process. False:
 * one line about `where`, which names the setting, was printed on stderr. */
bool secret_read(const char *where, const char *path, const char **secret);
/* Keeps a copy of a secret as long as the process lives. */
const char *secret_copy(const char *secret);
/* Logs a warning if every user of the machine may read the file. */
void secret_check_mode(const char *path);

#endif

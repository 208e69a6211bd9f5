/* The settings of language models and embedding endpoints, checked together at start. */
#ifndef DAYBOOK_SERVER_REMOTE_REMOTE_CHECK_H
#define DAYBOOK_SERVER_REMOTE_REMOTE_CHECK_H

#include "server/config.h"

/* False: one line about the first bad one was printed on stderr. Keys are never shown. */
bool remote_check(const struct config *c);
/* Whether another server may be asked at all. */
bool remote_wanted(const struct config *c);

#endif

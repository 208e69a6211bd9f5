/* Checks the settings of language models and embedding endpoints at start. */
#ifndef DAYBOOK_SERVER_REMOTE_REMOTE_CHECK_H
#define DAYBOOK_SERVER_REMOTE_REMOTE_CHECK_H

#include "server/config.h"

/* False: one line about the first invalid setting was printed on stderr. Keys are never printed. */
bool remote_check(const struct config *c);
/* Whether a model or an endpoint is configured. */
bool remote_check_configured(const struct config *c);

#endif

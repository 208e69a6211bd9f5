/* Addresses of other servers, as the settings give them. */
#ifndef DAYBOOK_SERVER_REMOTE_URL_H
#define DAYBOOK_SERVER_REMOTE_URL_H

#include <stdbool.h>

#include "core/base/arena.h"

/* Whether it is an http or https URL with a host, and without user, password or fragment. */
bool url_is_valid(const char *url);

/* Where requests go: `tail` is "messages" or "chat/completions". The URL may be given without the version
 * ("https://host"), with it ("https://host/v1") or in full; one with a query is in full. */
const char *url_of(struct arena *arena, const char *given, const char *tail);

/* "host:port", for the log: a path or a query may hold what is nobody's business. */
const char *url_host(struct arena *arena, const char *url);

#endif

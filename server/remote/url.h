/* URLs of other servers from the settings. */
#ifndef DAYBOOK_SERVER_REMOTE_URL_H
#define DAYBOOK_SERVER_REMOTE_URL_H

#include <stdbool.h>

#include "core/base/arena.h"

/* Whether it is an http or https URL with a host, without user, password or fragment. */
bool url_is_valid(const char *url);

/* Completes the URL with `tail`, which is "messages" or "chat/completions". `given` may be "https://host",
 * "https://host/v1" or the full URL. A URL with a query is taken as full. */
const char *url_of(struct arena *arena, const char *given, const char *tail);

/* "host:port", for the log. Leaves out path and query, which may contain secrets. */
const char *url_host(struct arena *arena, const char *url);

#endif

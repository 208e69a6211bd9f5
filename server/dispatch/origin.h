/* Protects a service that a browser on the same machine can reach from the pages that the browser shows. */
#ifndef DAYBOOK_SERVER_DISPATCH_ORIGIN_H
#define DAYBOOK_SERVER_DISPATCH_ORIGIN_H

#include "server/dispatch/call.h"

/* Without keys every caller is admin, so the request must be addressed to a name of loopback or to one of
 * --allowed-hosts: an attacker's name that resolves to loopback (DNS rebinding) is neither. */
enum err origin_check_host(struct call *c) must_check;
/* A page of another origin may not write. */
enum err origin_check_writer(struct call *c) must_check;

/* For tests. */
bool origin_is_allowed_host(const char *host, size_t len, const char *allowed);

#endif

/* The path of every request: match, authenticate, read, decode, run, reply. */
#ifndef DAYBOOK_SERVER_DISPATCH_DISPATCH_H
#define DAYBOOK_SERVER_DISPATCH_DISPATCH_H

#include "server/http/exchange.h"

/* The application that server/http calls. */
extern const struct http_app dispatch_app;

#endif

/* The path of every request: match, authenticate, read, parse, call, answer. */
#ifndef DAYBOOK_SERVER_DISPATCH_DISPATCH_H
#define DAYBOOK_SERVER_DISPATCH_DISPATCH_H

#include "server/http/exchange.h"

/* What the HTTP edge calls. */
extern const struct http_app dispatch_app;

#endif

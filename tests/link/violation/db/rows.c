#include "server/http/exchange.h"
#include "server/dispatch/call.h"
#include "db/db.h"

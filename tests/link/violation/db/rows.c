#include "server/http/exchange.h"
#include "server/call.h"
#include "db/db.h"

#include "db/conn.h"
#include "server/http/exchange.h"
#include "server/dispatch/query.h"

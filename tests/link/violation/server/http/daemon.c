#include "db/db.h"
#include "handlers/routes.h"
#include "server/task.h"

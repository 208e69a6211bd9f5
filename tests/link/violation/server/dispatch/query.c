#include "server/worker.h"
#include "server/json/field.h"

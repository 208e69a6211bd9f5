/* What each loop publishes about its database, for /health/ready, and the probe that tests writing. The
 * answer is db_health (db/db.h). */
#ifndef DAYBOOK_DB_HEALTH_H
#define DAYBOOK_DB_HEALTH_H

#include "server/loop.h"

struct db;

void health_open(struct db *db);
void health_close(struct db *db);
/* PostgreSQL reported a full disk to any statement. */
void health_storage_full(void);

#endif

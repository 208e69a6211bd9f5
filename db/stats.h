/* Statistics of the connections of a loop, for the metrics page. */
#ifndef DAYBOOK_DB_STATS_H
#define DAYBOOK_DB_STATS_H

#include <stdint.h>

#include "db/statement.h"

struct db;

enum { LANES = LANE_SLOW + 1 };

struct db_stats {
    int64_t ready[LANES];     /* connections that can be used */
    int64_t in_flight[LANES]; /* statements sent or queued, and not answered */
    int64_t waiting;          /* requests waiting for a slow connection */
    int64_t reconnects, lost; /* since the start */
};

void db_stats(const struct db *db, struct db_stats *out);

#endif

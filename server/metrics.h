/* Counters of one loop, and the page that Prometheus reads. */
#ifndef DAYBOOK_SERVER_METRICS_H
#define DAYBOOK_SERVER_METRICS_H

#include <stdint.h>

#include "core/buf.h"

struct metrics;
struct loop;

/* One for each loop; all of them are kept, so that any loop can add them up. Call before the loops start. */
struct metrics *metrics_open(struct loop *loop);
void metrics_close(void);

/* `route` is its index; the number of routes stands for "no route". */
void metrics_request(struct metrics *m, int route, int status, int64_t us);
/* Copies what this loop's parts count, once a turn at most. */
void metrics_observe(struct metrics *m);

/* The whole page, over all loops. */
void metrics_page(struct buf *out);

#endif

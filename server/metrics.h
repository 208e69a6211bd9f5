/* Counters of one loop, and the page that Prometheus reads. */
#ifndef DAYBOOK_SERVER_METRICS_H
#define DAYBOOK_SERVER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct metrics;
struct loop;

/* One for each loop; all of them are kept, so that any loop can add them up. Call before the loops start. */
struct metrics *metrics_open(struct loop *loop);
void metrics_close(void);

/* `route` is its index; the number of routes stands for "no route". */
void metrics_request(struct metrics *m, int route, int status, int64_t us);

/* A question to another server, its repetitions included: what came of it, how long it took, how many
 * requests it was. */
enum metrics_remote { METRICS_MODEL, METRICS_EMBEDDING, METRICS_REMOTES };
enum metrics_outcome {
    OUTCOME_OK,
    OUTCOME_FAILED,
    OUTCOME_TIMEOUT,
    OUTCOME_GIVEN_UP,     /* by the call that asked: its own time was up, or the service stopped */
    OUTCOME_CIRCUIT_OPEN, /* nobody was asked */
    OUTCOMES,
};
void metrics_remote(struct metrics *m, enum metrics_remote what, enum metrics_outcome outcome, int64_t us,
                    int tries);
void metrics_tokens(struct metrics *m, int64_t in, int64_t out);
void metrics_circuit(struct metrics *m, bool open);

/* Vectors made in the background: how many were made, texts that the embedder refused, failures of the run,
 * and what was pending when it was counted last. */
enum metrics_backfill { BACKFILL_EMBEDDED, BACKFILL_REFUSED, BACKFILL_FAILED, BACKFILL_PENDING, BACKFILLS };
void metrics_backfill(struct metrics *m, enum metrics_backfill what, int64_t n);

/* What came of a reflection, and why; `reason` NULL: it ran. */
void metrics_reflection(struct metrics *m, const char *outcome, const char *reason);

/* Copies what this loop's parts count, once a turn at most. */
void metrics_observe(struct metrics *m);

/* The whole page, over all loops. */
void metrics_page(struct buf *out);

#endif

/* Per-loop counters and the Prometheus page. */
#ifndef DAYBOOK_SERVER_METRICS_H
#define DAYBOOK_SERVER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct metrics;
struct loop;

/* One per loop, in a global list so that any loop can sum them. Call it before the loops start. */
struct metrics *metrics_open(struct loop *loop);
void metrics_close(void);

/* `route` is the route's index; route_count() means "no route". */
void metrics_request(struct metrics *m, int route, int status, int64_t us);

/* A call to another server, retries included: its outcome, duration and number of requests. */
enum metrics_remote { METRICS_MODEL, METRICS_EMBEDDING, METRICS_REMOTES };
enum metrics_outcome {
    OUTCOME_OK,
    OUTCOME_FAILED,
    OUTCOME_TIMEOUT,
    OUTCOME_GIVEN_UP,     /* the request that made the call timed out, or the service stopped */
    OUTCOME_CIRCUIT_OPEN, /* no request was sent */
    OUTCOMES,
};
void metrics_remote(struct metrics *m, enum metrics_remote what, enum metrics_outcome outcome, int64_t us,
                    int tries);
void metrics_tokens(struct metrics *m, int64_t in, int64_t out);
void metrics_circuit(struct metrics *m, bool open);

/* Vectors made in the background: how many were made, texts that the embedder rejected, failures of the run,
 * and what was pending when it was counted last. */
enum metrics_backfill { BACKFILL_EMBEDDED, BACKFILL_REJECTED, BACKFILL_FAILED, BACKFILL_PENDING, BACKFILLS };
void metrics_backfill(struct metrics *m, enum metrics_backfill what, int64_t n);

/* Requests rejected because of their key, by reason, and lookups of unknown keys in the database. */
enum metrics_key {
    METRICS_KEY_UNKNOWN,
    METRICS_KEY_REVOKED,
    METRICS_KEY_EXPIRED,
    METRICS_KEY_LIMITED,         /* beyond the rate of the key */
    METRICS_KEY_ADDRESS_LIMITED, /* not checked: its address failed too often */
    METRICS_KEYS,
};
void metrics_key_rejected(struct metrics *m, enum metrics_key reason);
void metrics_key_lookup(struct metrics *m);

/* The outcome of a reflection and its reason; NULL: it ran. */
void metrics_reflection(struct metrics *m, const char *outcome, const char *reason);

/* Something was not stored because of its observation type: a name (KIND_NAME), so it needs no escape. */
void metrics_write_denied(struct metrics *m, const char *type);

/* Copies the counters of this loop's parts. Call it at most once per turn. */
void metrics_observe(struct metrics *m);

/* The whole page, over all loops. */
void metrics_page(struct buf *out);

#endif

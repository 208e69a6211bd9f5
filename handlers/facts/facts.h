/* Facts, shared by the routes of single facts and the merge. */
#ifndef DAYBOOK_HANDLERS_FACTS_FACTS_H
#define DAYBOOK_HANDLERS_FACTS_FACTS_H

#include "core/facts/fact.h"
#include "handlers/kit/fields.h"
#include "server/dispatch/query.h"

enum { FACT_KEY_MAX = 200, FACT_SCOPE_MAX = 100, FACT_VALUE_BYTES = 8192 };
#define FACT_TTL_MAX 315360000 /* seconds */
#define FACT_SCOPE   "global"

/* The input of the routes of facts. */
struct fact_in {
    const char *key, *scope, *as_of, *at;
    const char *value, *observation_type, *source, *confidence;
    const char *change, *default_types; /* computed */
    const char *prefix, *archived, *needs_verification, *stale, *format;
    int64_t ttl_seconds, limit;
    struct cursor_values cursor;
};

/* The columns of a list of facts that C code reads. */
SHARED_COLUMNS(fact_row, key, scope, value, source, confidence, needs_verification, stale, written_at,
               expires_at);

/* The facts of the list that `in` filters, at most in->limit and one more. */
enum err fact_find(struct call *c, const struct fact_in *in, struct rows **r) must_check;

/* Stores the value of `in`, inside a transaction or alone. The row is the fact as it is now.
 * ERR_WRITE_DENIED, ERR_TIME_ORDER: nothing was stored, and the problem says why. */
enum err fact_store(struct call *c, const struct fact_in *in, struct rows **r) must_check;

#endif

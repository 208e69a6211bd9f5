/* The built-in write policy: which observations an owner stores who has set no policy. */
#ifndef DAYBOOK_CORE_FACTS_WRITE_POLICY_H
#define DAYBOOK_CORE_FACTS_WRITE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct write_rule {
    const char *type;
    bool store;
    int64_t ttl_seconds; /* 0: no expiry */
};

/* By name; the last one has no type. A type that is not listed is not stored. */
extern const struct write_rule write_policy_rules[];

/* The rules as a JSON object by type, in the form of write_policies.types. */
void write_policy_json(struct buf *out);
/* The same as the list of GET /v1/write_policy. */
void write_policy_list(struct buf *out);

#endif

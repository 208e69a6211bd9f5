/* The write policy in routes that store what names an observation type. */
#include "handlers/kit/policy.h"

#include "core/facts/write_policy.h"
#include "server/metrics.h"

const char *policy_default_types(struct arena *arena)
{
    struct buf out = { .arena = arena };
    write_policy_json(&out);
    return buf_string(&out);
}

enum err policy_denied(struct call *c, const char *type, bool listed)
{
    metrics_write_denied(c->loop->metrics, type);
    return problem_set(&c->problem, ERR_WRITE_DENIED, "the write policy %s observations of the type %s",
                       listed ? "does not store" : "has no rule for, and so does not store,", type);
}

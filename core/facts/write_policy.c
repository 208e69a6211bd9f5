/* The built-in write policy: which observations an owner stores who has set no policy. */
#include "core/facts/write_policy.h"

#include "core/base/json_put.h"

enum { DAY = 86400 };

/* A summary of a session has a time to live, but is not stored until a policy says so. */
const struct write_rule write_policy_rules[] = {
    { "failed_tool_call", false, 0 },
    { "intermediate_reasoning", false, 0 },
    { "session_summary", false, 30 * DAY },
    { "speculative_inference", false, 0 },
    { "task_completion_strategy", true, 90 * DAY },
    { "tool_result_verified", true, 7 * DAY },
    { "user_stated_preference", true, 0 },
    { NULL, false, 0 },
};

static void put_rule(struct buf *out, const struct write_rule *rule)
{
    json_put_bool(out, "store", rule->store);
    if (rule->ttl_seconds)
        json_put_int(out, "ttl_seconds", rule->ttl_seconds);
    else
        json_put_raw(out, "ttl_seconds", NULL);
}

void write_policy_json(struct buf *out)
{
    buf_char(out, '{');
    for (const struct write_rule *rule = write_policy_rules; rule->type; rule++) {
        buf_json_key(out, rule->type);
        buf_char(out, '{');
        put_rule(out, rule);
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

void write_policy_list(struct buf *out)
{
    buf_char(out, '[');
    for (const struct write_rule *rule = write_policy_rules; rule->type; rule++) {
        buf_text(out, rule == write_policy_rules ? "{" : ",{");
        json_put_text(out, "observation_type", rule->type);
        put_rule(out, rule);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

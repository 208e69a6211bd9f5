/* The write policy of an owner: which observations are stored, and for how long. */
#include "core/facts/write_policy.h"

#include <string.h>

#include "core/base/json_put.h"
#include "handlers/facts/facts.h"
#include "handlers/kit/instant.h"
#include "handlers/kit/policy.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"

enum { TYPES_MAX = 100, STORE_TRIES = 8 };

struct rule_in {
    const char *observation_type, *store;
    int64_t ttl_seconds;
};

struct policy_in {
    const char *as_of, *at, *observation_type, *default_types;
    struct objects types; /* of struct rule_in */
};

/* clang-format off */
#define R(kind, member, ...) FIELD(FROM_BODY, kind, struct rule_in, member, __VA_ARGS__)
#define P(from, kind, member, ...) FIELD(from, kind, struct policy_in, member, __VA_ARGS__)
static const struct field rule_fields[] = {
    R(KIND_NAME, observation_type, .required = true),
    R(KIND_BOOL, store, .required = true),
    R(KIND_INT, ttl_seconds, .min = 1, .max = FACT_TTL_MAX),
    END_FIELDS,
};
static const struct field get_fields[] = { FIELD_AS_OF(struct policy_in), END_FIELDS };
static const struct field put_fields[] = {
    P(FROM_BODY, KIND_OBJECTS, types, .required = true, .min = 0, .max = TYPES_MAX, SUB(rule_fields, struct rule_in)),
    P(FROM_BODY, KIND_TIME, at),
    END_FIELDS,
};
static const struct field check_fields[] = {
    P(FROM_BODY, KIND_NAME, observation_type, .required = true),
    P(COMPUTED, KIND_TEXT, default_types),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(found, version, types, known_from, created_at);
COLUMNS(stored, version, types, known_from, created_at, _too_early, _same, _at);
COLUMNS(checked, listed, allowed, ttl_seconds);
QUERY(policy_get, WRITE_POLICY_GET, get_fields, READS(found), .missing = "write policy");
QUERY(policy_put, WRITE_POLICY_PUT, put_fields, READS(stored));
QUERY(policy_check, WRITE_POLICY_CHECK, check_fields, READS(checked), .missing = "write policy");

/* ---- get ---- */

/* The built-in policy has no version and no time. */
static void put_built_in(struct buf *out)
{
    buf_text(out, "{\"built_in\":true,\"version\":null,\"types\":");
    write_policy_list(out);
    buf_text(out, ",\"known_from\":null,\"created_at\":null}");
}

static void put_own(struct buf *out, const struct rows *r)
{
    buf_text(out, "{\"built_in\":false");
    rows_members(out, r, 0);
    buf_char(out, '}');
}

static enum err render_policy(struct call *c, const struct rows *r)
{
    struct buf *out = call_reply_json(c, 200);
    if (rows_text(r, 0, &found.version))
        put_own(out, r);
    else
        put_built_in(out);
    return OK;
}

/* ---- put ---- */

static enum err check_types(struct call *c, const struct objects *types)
{
    const struct rule_in *rules = types->items;
    enum err err = OK;
    for (size_t i = 0; i < types->count; i++)
        for (size_t before = 0; before < i; before++)
            if (strcmp(rules[before].observation_type, rules[i].observation_type) == 0) {
                err = problem_field(&c->problem, arena_fmt(&c->arena, "types[%zu].observation_type", i),
                                    FAULT_DUPLICATE_ITEM, "is in the list already, at [%zu]", before);
                break;
            }
    return err;
}

static enum err put(struct call *c)
{
    const struct policy_in *in = c->in;
    struct rows *r;
    TRY(check_types(c, &in->types));
    TRY(instant_check(c, "at", in->at));
    for (int i = 0; i < STORE_TRIES; i++) {
        TRY(query_one(c, &policy_put, in, NULL, &r));
        if (row_bool(r, 0, &stored._too_early))
            return problem_set(&c->problem, ERR_TIME_ORDER, "the policy in force is dated after %s",
                               rows_time(r, 0, &stored._at, &c->arena));
        if (!rows_text(r, 0, &stored.version))
            continue;
        if (row_bool(r, 0, &stored._same))
            TRY(query_durable(c));
        put_own(call_reply_json(c, 200), r);
        return OK;
    }
    return problem_set(&c->problem, ERR_OVERLOADED, "the policy is changed all the time");
}

/* ---- check ---- */

static enum err prepare_check(struct call *c)
{
    struct policy_in *in = c->in;
    in->default_types = policy_default_types(&c->arena);
    return OK;
}

static enum err render_check(struct call *c, const struct rows *r)
{
    const struct policy_in *in = c->in;
    const bool listed = row_bool(r, 0, &checked.listed), allowed = row_bool(r, 0, &checked.allowed);
    struct buf *out = call_reply_json(c, 200);
    buf_char(out, '{');
    json_put_text(out, "observation_type", in->observation_type);
    json_put_bool(out, "store", allowed);
    json_put_raw(out, "ttl_seconds", rows_text(r, 0, &checked.ttl_seconds));
    json_put_text(out, "reason", allowed ? "stored" : listed ? "not_stored" : "unknown_type");
    buf_char(out, '}');
    return OK;
}

#define IN(table) INPUT(table, struct policy_in)

/* An agent that could change the policy would not be bound by it. */
const struct route write_policy_routes[] = {
    { GET, "/v1/write_policy", .query = &policy_get, .render = render_policy, IN(get_fields),
      .role = ROLE_READER },
    { PUT, "/v1/write_policy", put, IN(put_fields), .role = ROLE_ADMIN, .waits = true },
    { POST, "/v1/write_policy/check", .prepare = prepare_check, .query = &policy_check,
      .render = render_check, IN(check_fields), .role = ROLE_READER, .safe = true },
    END_ROUTES,
};

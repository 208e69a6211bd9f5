/* Facts: put, get, list, correct, verify, delete and restore. */
#include "handlers/facts/facts.h"

#include <string.h>

#include "handlers/kit/export.h"
#include "handlers/kit/instant.h"
#include "handlers/kit/policy.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"

enum { STORE_TRIES = 8 }; /* if others change the same fact at the same time */

/* clang-format off */
#define F(from, kind, member, ...) FIELD(from, kind, struct fact_in, member, __VA_ARGS__)
#define KEY   F(FROM_PATH, KIND_KEY, key, .required = true, .min = 1, .max = FACT_KEY_MAX), \
              F(FROM_QUERY, KIND_KEY, scope, .min = 1, .max = FACT_SCOPE_MAX, .fallback = FACT_SCOPE)
#define AS_OF FIELD_AS_OF(struct fact_in)
#define PAGE  FIELD_PAGE(struct fact_in)
/* Without a fallback: a change is not dated before the one that it follows. */
#define AT    F(FROM_BODY, KIND_TIME, at)
#define VALUE F(FROM_BODY, KIND_JSON, value, .required = true, .min = 1, .max = FACT_VALUE_BYTES)
#define TTL   F(FROM_BODY, KIND_INT, ttl_seconds, .min = 1, .max = FACT_TTL_MAX)
#define COMPUTED_WRITE F(COMPUTED, KIND_TEXT, change), F(COMPUTED, KIND_TEXT, default_types)

static const struct field put_fields[] = {
    KEY, VALUE,
    F(FROM_BODY, KIND_NAME, observation_type, .required = true),
    F(FROM_BODY, KIND_CHOICE, source, .required = true, .choices = fact_sources),
    F(FROM_BODY, KIND_NUMBER, confidence, .min = 0, .max = 1),
    TTL, AT, COMPUTED_WRITE,
    END_FIELDS,
};
static const struct field correct_fields[] = {
    KEY, VALUE,
    F(FROM_BODY, KIND_NAME, observation_type),
    TTL, AT,
    F(COMPUTED, KIND_TEXT, source), F(COMPUTED, KIND_NUMBER, confidence), COMPUTED_WRITE,
    END_FIELDS,
};
static const struct field verify_fields[] = {
    KEY,
    F(FROM_BODY, KIND_CHOICE, source, .choices = CHOICES("user_stated", "tool_verified"), .fallback = "tool_verified"),
    F(FROM_BODY, KIND_NUMBER, confidence, .min = 0, .max = 1),
    AT, F(COMPUTED, KIND_TEXT, change),
    END_FIELDS,
};
static const struct field restore_fields[] = {
    KEY, AT,
    F(COMPUTED, KIND_TEXT, source), F(COMPUTED, KIND_NUMBER, confidence), F(COMPUTED, KIND_TEXT, change),
    END_FIELDS,
};
static const struct field delete_fields[] = {
    KEY, F(FROM_QUERY, KIND_TIME, at),
    F(COMPUTED, KIND_TEXT, source), F(COMPUTED, KIND_NUMBER, confidence), F(COMPUTED, KIND_TEXT, change),
    END_FIELDS,
};
static const struct field get_fields[] = { KEY, AS_OF, END_FIELDS };
static const struct field history_fields[] = { KEY, AS_OF, PAGE, END_FIELDS };
#define FILTER \
    AS_OF, \
    F(FROM_QUERY, KIND_KEY, scope, .min = 1, .max = FACT_SCOPE_MAX), \
    F(FROM_QUERY, KIND_KEY, prefix, .min = 1, .max = FACT_KEY_MAX), \
    F(FROM_QUERY, KIND_NAME, observation_type), \
    F(FROM_QUERY, KIND_CHOICE, source, .choices = fact_sources), \
    F(FROM_QUERY, KIND_BOOL, needs_verification), \
    F(FROM_QUERY, KIND_BOOL, stale), \
    F(FROM_QUERY, KIND_BOOL, archived, .fallback = "false")
static const struct field list_fields[] = { FILTER, PAGE, END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct fact_in), END_FIELDS };
/* clang-format on */

#define FACT_NAMED "fact {key} in the scope {scope}"
COLUMNS(written, version, _listed, _allowed, _type, _too_early, _at, _same);
COLUMNS(changed, version, _state, _fits, _too_early, _at);

QUERY(fact_get, FACT_GET, get_fields, .missing = FACT_NAMED);
QUERY(fact_list, FACT_LIST, list_fields, READS(fact_row));
QUERY(fact_export, FACT_EXPORT, export_fields);
QUERY(fact_history, FACT_HISTORY, history_fields, .missing = FACT_NAMED);
QUERY(fact_write, FACT_WRITE, put_fields, READS(written));
QUERY(fact_change, FACT_CHANGE, delete_fields, READS(changed), .missing = FACT_NAMED);

static enum err too_early(struct call *c, const struct fact_in *in, const char *at)
{
    return problem_set(&c->problem, ERR_TIME_ORDER, "the last change of fact %s is dated after %s", in->key,
                       at);
}

static enum err contended(struct call *c, const struct fact_in *in)
{
    return problem_set(&c->problem, ERR_OVERLOADED, "fact %s is changed all the time", in->key);
}

enum err fact_find(struct call *c, const struct fact_in *in, struct rows **r)
{
    return query_rows(c, &fact_list, in, NULL, r);
}

/* ---- values ---- */

enum err fact_store(struct call *c, const struct fact_in *in, struct rows **r)
{
    for (int i = 0; i < STORE_TRIES; i++) {
        TRY(query_one(c, &fact_write, in, NULL, r));
        if (!row_bool(*r, 0, &written._allowed))
            return policy_denied(c, rows_text(*r, 0, &written._type), row_bool(*r, 0, &written._listed));
        if (row_bool(*r, 0, &written._too_early))
            return too_early(c, in, rows_time(*r, 0, &written._at, &c->arena));
        if (rows_text(*r, 0, &written.version))
            return row_bool(*r, 0, &written._same) ? query_durable(c) : OK;
    }
    return contended(c, in);
}

static enum err put(struct call *c)
{
    struct fact_in *in = c->in;
    struct rows *r;
    TRY(instant_check(c, "at", in->at));
    in->change = "put";
    in->default_types = policy_default_types(&c->arena);
    if (!in->confidence)
        in->confidence = fact_confidence(in->source);
    TRY(fact_store(c, in, &r));
    return reply_row(c, row_int(r, 0, &written.version, 0) == 1 ? 201 : 200, r);
}

static enum err correct_tx(struct call *c, void *arg)
{
    struct rows *r;
    TRY(fact_store(c, arg, &r));
    return reply_row(c, 200, r);
}

static enum err correct(struct call *c)
{
    struct fact_in *in = c->in;
    TRY(instant_check(c, "at", in->at));
    in->change = "correct";
    in->source = FACT_CORRECTION;
    in->confidence = fact_confidence(in->source);
    in->default_types = policy_default_types(&c->arena);
    return query_tx(c, correct_tx, in);
}

/* ---- changes ---- */

/* ERR_NOT_FOUND for a fact that no read finds. */
static enum err wrong_state(struct call *c, const struct fact_in *in, const char *state)
{
    if (strcmp(in->change, "restore") == 0 && strcmp(state, "deleted") != 0)
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "fact %s is not archived, it is %s", in->key,
                           state);
    return problem_set(&c->problem, ERR_NOT_FOUND, "fact %s in the scope %s is %s", in->key, in->scope,
                       state);
}

static enum err change_fact(struct call *c, const struct fact_in *in, struct rows **r)
{
    for (int i = 0; i < STORE_TRIES; i++) {
        TRY(query_one(c, &fact_change, in, NULL, r));
        if (!row_bool(*r, 0, &changed._fits))
            return wrong_state(c, in, rows_text(*r, 0, &changed._state));
        if (row_bool(*r, 0, &changed._too_early))
            return too_early(c, in, rows_time(*r, 0, &changed._at, &c->arena));
        if (rows_text(*r, 0, &changed.version))
            return OK;
    }
    return contended(c, in);
}

static enum err change_tx(struct call *c, void *arg)
{
    struct rows *r;
    TRY(change_fact(c, arg, &r));
    return reply_row(c, 200, r);
}

static enum err verify(struct call *c)
{
    struct fact_in *in = c->in;
    TRY(instant_check(c, "at", in->at));
    in->change = "verify";
    if (!in->confidence)
        in->confidence = fact_confidence(in->source);
    return query_tx(c, change_tx, in);
}

static enum err restore(struct call *c)
{
    struct fact_in *in = c->in;
    TRY(instant_check(c, "at", in->at));
    in->change = "restore";
    return query_tx(c, change_tx, in);
}

static enum err delete_fact(struct call *c)
{
    struct fact_in *in = c->in;
    struct rows *r;
    TRY(instant_check(c, "at", in->at));
    in->change = "delete";
    TRY(change_fact(c, in, &r));
    c->reply.status = 204;
    return OK;
}

#define IN(table) INPUT(table, struct fact_in)

const struct route fact_routes[] = {
    { GET, "/v1/facts", .query = &fact_list, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/facts/export", export_route, .exports = &fact_export, IN(export_fields), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/facts/{key}", .query = &fact_get, IN(get_fields), .role = ROLE_READER },
    { PUT, "/v1/facts/{key}", put, IN(put_fields), .role = ROLE_RESEARCHER, .waits = true },
    { DELETE, "/v1/facts/{key}", delete_fact, IN(delete_fields), .role = ROLE_AGENT, .waits = true },
    { GET, "/v1/facts/{key}/history", .query = &fact_history, IN(history_fields), .role = ROLE_READER },
    { POST, "/v1/facts/{key}/correct", correct, IN(correct_fields), .role = ROLE_RESEARCHER, .waits = true },
    { POST, "/v1/facts/{key}/verify", verify, IN(verify_fields), .role = ROLE_RESEARCHER, .waits = true },
    { POST, "/v1/facts/{key}/restore", restore, IN(restore_fields), .role = ROLE_AGENT, .waits = true },
    END_ROUTES,
};

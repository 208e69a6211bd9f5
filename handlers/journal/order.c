/* Orders: the intent before the broker is asked, and the outcome. */
#include "core/journal/journal_names.h"
#include "core/journal/order_outcome.h"
#include "core/ledger/trade.h"
#include "handlers/journal/journal.h"
#include "handlers/kit/export.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

/* The input of all routes of orders. */
struct order_in {
    const char *id, *at, *as_of, *since, *until;
    const char *deployment_id, *client_order_id, *symbol, *action, *side, *size, *reason;
    const char *thesis_id, *decision_id, *agent_name, *model_call_id;
    const char *outcome, *filled_size, *average_price, *fees_usd, *broker_order_id, *format;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define O(from, kind, member, ...) FIELD(from, kind, struct order_in, member, __VA_ARGS__)
#define ID     FIELD_ID(struct order_in)
#define AUTHOR JOURNAL_AT(struct order_in), JOURNAL_AUTHOR(struct order_in)
#define REASON O(FROM_BODY, KIND_TEXT, reason, .min = 1, .max = 2000)

static const struct field create_fields[] = {
    O(FROM_BODY, KIND_UUID, deployment_id, .required = true),
    JOURNAL_SYMBOL(FROM_BODY, struct order_in, .required = true),
    O(FROM_BODY, KIND_CHOICE, action, .required = true, .choices = journal_names_order_actions),
    O(FROM_BODY, KIND_CHOICE, side, .required = true, .choices = trade_side_names),
    O(FROM_BODY, KIND_NUMBER, size, .above_zero = true),
    REASON,
    O(FROM_BODY, KIND_LINE, client_order_id, .min = 1, .max = 200),
    O(FROM_BODY, KIND_UUID, thesis_id),
    O(FROM_BODY, KIND_UUID, decision_id),
    AUTHOR,
    END_FIELDS,
};
static const struct field get_fields[] = { ID, FIELD_AS_OF(struct order_in), END_FIELDS };
#define FILTER \
    JOURNAL_FILTER(struct order_in), \
    O(FROM_QUERY, KIND_CHOICE, action, .choices = journal_names_order_actions), \
    O(FROM_QUERY, KIND_LINE, client_order_id, .min = 1, .max = 200), \
    O(FROM_QUERY, KIND_CHOICE, outcome, .choices = CHOICES("filled", "rejected", "cancelled", "unknown", "none"))
static const struct field list_fields[] = { FILTER, FIELD_PAGE(struct order_in), END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct order_in), END_FIELDS };
static const struct field outcome_fields[] = {
    ID,
    O(FROM_BODY, KIND_CHOICE, outcome, .required = true, .choices = order_outcome_names),
    O(FROM_BODY, KIND_NUMBER, filled_size, .above_zero = true),
    O(FROM_BODY, KIND_NUMBER, average_price, .above_zero = true),
    O(FROM_BODY, KIND_NUMBER, fees_usd),
    O(FROM_BODY, KIND_LINE, broker_order_id, .min = 1, .max = 200),
    REASON,
    AUTHOR,
    END_FIELDS,
};
/* clang-format on */

COLUMNS(created, id, _deployment_known, _thesis_known, _thesis_symbol, _thesis_deployment, _decision_known,
        _decision_symbol, _decision_deployment);
COLUMNS(repeated, id, _same);
COLUMNS(locked, outcome, at, too_early, same_details);

QUERY(order_create, ORDER_CREATE, create_fields, READS(created));
QUERY(order_repeat, ORDER_REPEAT, create_fields, READS(repeated));
QUERY(order_get, ORDER_GET, get_fields, .missing = "order {id}");
QUERY(order_list, ORDER_LIST, list_fields);
QUERY(order_export, ORDER_EXPORT, export_fields);
QUERY(order_lock, ORDER_LOCK, outcome_fields, READS(locked), .missing = "order {id}");
QUERY(order_current, ORDER_CURRENT, outcome_fields, .missing = "order {id}");
QUERY(order_resolve, ORDER_RESOLVE, outcome_fields, .missing = "order {id}");

/* ---- the intent ---- */

static enum err check_references(struct call *c, const struct order_in *in, const struct rows *r)
{
    const struct journal_reference thesis = {
        .field = "thesis_id",
        .what = "thesis",
        .id = in->thesis_id,
        .known = row_bool(r, 0, &created._thesis_known),
        .symbol = rows_text(r, 0, &created._thesis_symbol),
        .deployment_id = rows_text(r, 0, &created._thesis_deployment),
    };
    const struct journal_reference decision = {
        .field = "decision_id",
        .what = "decision",
        .id = in->decision_id,
        .known = row_bool(r, 0, &created._decision_known),
        .symbol = rows_text(r, 0, &created._decision_symbol),
        .deployment_id = rows_text(r, 0, &created._decision_deployment),
    };
    if (!row_bool(r, 0, &created._deployment_known))
        return journal_no_deployment(c, in->deployment_id);
    const enum err of_thesis = journal_check_reference(c, &thesis);
    const enum err of_decision = journal_check_reference(c, &decision);
    return of_thesis != OK ? of_thesis : of_decision;
}

/* The order with that client_order_id exists. */
static enum err reply_repeat(struct call *c, const struct order_in *in)
{
    struct rows *r;
    TRY(query_one(c, &order_repeat, in, NULL, &r));
    if (!row_bool(r, 0, &repeated._same))
        return problem_set(
            &c->problem, ERR_ORDER_CONFLICT,
            "client_order_id %s belongs to order %s, which differs in its symbol, action, side, "
            "size, reason, thesis_id, decision_id or at",
            in->client_order_id, rows_text(r, 0, &repeated.id));
    TRY(query_durable(c));
    return reply_row(c, 200, r);
}

static enum err create_order(struct call *c)
{
    const struct order_in *in = c->in;
    struct rows *r;
    TRY(query_one(c, &order_create, in, NULL, &r));
    TRY(check_references(c, in, r));
    if (!rows_text(r, 0, &created.id))
        return reply_repeat(c, in);
    journal_stored(c, false);
    return reply_created(c, r, "/v1/orders", &created.id);
}

/* ---- the outcome ---- */

static enum err store_outcome(struct call *c, struct order_in *in, const struct rows *locked_order)
{
    struct rows *r;
    in->at = rows_time(locked_order, 0, &locked.at, &c->arena);
    if (row_bool(locked_order, 0, &locked.too_early))
        return problem_set(&c->problem, ERR_TIME_ORDER, "order %s was changed after %s", in->id, in->at);
    TRY(query_one(c, &order_resolve, in, NULL, &r));
    journal_stored(c, false);
    return reply_row(c, 200, r);
}

static enum err outcome_tx(struct call *c, void *arg)
{
    struct order_in in = *(const struct order_in *)arg;
    struct rows *r;
    TRY(query_one(c, &order_lock, &in, NULL, &r));
    const char *from = rows_text(r, 0, &locked.outcome);
    switch (order_outcome_step(from, in.outcome)) {
    case ORDER_STEP_REFUSED:
        return problem_set(&c->problem, ERR_INVALID_TRANSITION, "order %s is %s and cannot become %s", in.id,
                           from, in.outcome);
    case ORDER_STEP_REPEAT:
        if (order_outcome_is_final(from) && !row_bool(r, 0, &locked.same_details))
            return problem_set(&c->problem, ERR_INVALID_TRANSITION,
                               "order %s is %s with other details, which are final", in.id, from);
        TRY(query_durable(c));
        return query_reply(c, 200, &order_current, &in);
    case ORDER_STEP_CHANGE:
        break;
    }
    return store_outcome(c, &in, r);
}

static enum err post_outcome(struct call *c)
{
    return query_tx(c, outcome_tx, c->in);
}

#define IN(table) INPUT(table, struct order_in)

const struct route order_routes[] = {
    { POST, "/v1/orders", create_order, IN(create_fields), .role = ROLE_AGENT, .waits = true },
    { GET, "/v1/orders", .query = &order_list, IN(list_fields), .role = ROLE_READER },
    { GET, "/v1/orders/export", export_route, .exports = &order_export, IN(export_fields),
      .role = ROLE_READER, .waits = true },
    { GET, "/v1/orders/{id}", .query = &order_get, IN(get_fields), .role = ROLE_READER },
    { POST, "/v1/orders/{id}/outcome", post_outcome, IN(outcome_fields), .role = ROLE_AGENT, .waits = true },
    END_ROUTES,
};

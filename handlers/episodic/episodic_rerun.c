/* Decides whether a question must be asked again: reads the prior answer, applies core/episodic/rerun. */
#include "core/base/json_put.h"
#include "handlers/episodic/episodic.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

struct rerun_in {
    const char *ticker, *task_type, *as_of, *cost_usd;
    struct objects new_signals; /* of struct regime_in */
    int64_t days_threshold;
};

/* The parameters of EPISODE_REUSE. */
struct reuse {
    const char *prior_id, *as_of, *cost_usd;
};

/* clang-format off */
#define R(from, kind, member, ...) FIELD(from, kind, struct rerun_in, member, __VA_ARGS__)
static const struct field rerun_fields[] = {
    R(FROM_BODY, KIND_LINE, ticker, .required = true, .min = 1, .max = 64),
    R(FROM_BODY, KIND_LINE, task_type, .required = true, .min = 1, .max = 64),
    R(FROM_BODY, KIND_INT, days_threshold, .min = 1, .max = 3650, .fallback = "14"),
    SIGNALS_FIELD(struct rerun_in, new_signals),
    R(FROM_BODY, KIND_TIME, as_of, .fallback = "now"),
    R(FROM_BODY, KIND_NUMBER, cost_usd, .min = 0, .max = 1000000),
    END_FIELDS,
};

#define U(kind, member) FIELD(COMPUTED, kind, struct reuse, member)
static const struct field reuse_fields[] = {
    U(KIND_UUID, prior_id), U(KIND_TIME, as_of), U(KIND_NUMBER, cost_usd), END_FIELDS,
};
/* clang-format on */

QUERY(episode_prior, EPISODE_PRIOR, rerun_fields, READS(prior_row));
QUERY(episode_reuse, EPISODE_REUSE, reuse_fields);

/* ---- the prior ---- */

bool episodic_prior_exists(const struct rows *prior)
{
    return rows_text(prior, 0, &prior_row.id) != NULL;
}

struct rerun episodic_prior_decide(struct call *c, const struct rows *prior,
                                   const struct rerun_signals *signals)
{
    if (!episodic_prior_exists(prior))
        return rerun_decide(NULL, signals);
    const struct rerun_prior p = {
        .confidence = row_decimal(prior, 0, &prior_row.confidence),
        .regime = episodic_regime_from_json(&c->arena, rows_text(prior, 0, &prior_row.regime_tag)),
    };
    return rerun_decide(&p, signals);
}

enum err episodic_prior_reuse(struct call *c, const struct rows *prior, const char *as_of,
                              const char *cost_usd)
{
    const struct reuse reuse = { rows_text(prior, 0, &prior_row.id), as_of, cost_usd };
    return query_run(c, &episode_reuse, &reuse);
}

void episodic_prior_json(struct buf *out, const struct rows *prior, const struct rerun *r)
{
    const char *reasons[RERUN_REASONS];
    size_t count = 0;
    for (int i = 0; i < RERUN_REASONS; i++)
        if (r->reasons & 1U << i)
            reasons[count++] = rerun_reason_names[i];
    json_put_texts(out, "reasons", reasons, count);
    buf_json_key(out, "regime_keys");
    buf_char(out, '{');
    json_put_texts(out, "changed", r->changed, r->changed_count);
    json_put_texts(out, "unknown", r->unknown, r->unknown_count);
    buf_char(out, '}');
    buf_json_key(out, "prior");
    if (episodic_prior_exists(prior))
        rows_json(out, prior, 0);
    else
        buf_text(out, "null");
    json_put_raw(out, "prior_age_days", rows_text(prior, 0, &prior_row._age_days));
}

/* ---- the route ---- */

/* Replies with the prior as it was before this reuse is counted. */
static enum err should_rerun(struct call *c)
{
    const struct rerun_in *in = c->in;
    struct rerun_signals signals;
    struct rows *prior;
    TRY(episodic_rerun_signals(c, "new_signals", &in->new_signals, &signals));
    TRY(query_one(c, &episode_prior, in, NULL, &prior));
    const struct rerun r = episodic_prior_decide(c, prior, &signals);
    struct buf *out = call_reply_json(c, 200);
    buf_char(out, '{');
    json_put_bool(out, "rerun", r.reasons != 0);
    episodic_prior_json(out, prior, &r);
    buf_char(out, '}');
    return r.reasons ? OK : episodic_prior_reuse(c, prior, in->as_of, in->cost_usd);
}

const struct route rerun_routes[] = {
    { POST, "/v1/episodic/should_rerun", should_rerun, INPUT(rerun_fields, struct rerun_in),
      .role = ROLE_RESEARCHER, .waits = true },
    END_ROUTES,
};

/* Decides whether a question must be asked again: reads the prior answer, applies core/episodic/rerun. */
#include <string.h>

#include "handlers/episodic/episodic.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/row.h"
#include "handlers/routes.h"
#include "server/json/reader.h"

struct rerun_in {
    const char *ticker, *task_type, *as_of, *cost_usd, *prior_id;
    struct objects new_signals; /* of struct regime_in */
    int64_t days_threshold;
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
    R(COMPUTED, KIND_UUID, prior_id),
    END_FIELDS,
};
/* clang-format on */

QUERY(episode_prior, EPISODE_PRIOR, rerun_fields, READS(prior_row));
QUERY(episode_reuse, EPISODE_REUSE, rerun_fields);

/* ---- regimes and signals ---- */

/* The first character of a value determines its kind: text, boolean or number. */
static struct regime_tag read_tag(struct json_reader *r, const char *name)
{
    switch (reader_peek(r)) {
    case '"':
        return (struct regime_tag){ name, REGIME_TAG_TEXT, reader_text(r) };
    case 't':
    case 'f':
        return (struct regime_tag){ name, REGIME_TAG_BOOL, reader_word(r) };
    default: /* null and other kinds give no value */
        return (struct regime_tag){ name, REGIME_TAG_NUMBER, reader_lexeme(r) };
    }
}

struct regime_tags episodic_regime_from_json(struct arena *arena, const char *json)
{
    struct regime_tag *items = arena_alloc(arena, RERUN_TAGS_MOST * sizeof *items);
    size_t count = 0;
    struct json_reader r = reader_begin_stored(arena_text(arena, json), strlen(json));
    if (reader_object(&r))
        for (const char *name; (name = reader_name(&r));) {
            struct regime_tag tag = read_tag(&r, name);
            if (tag.text && count < RERUN_TAGS_MOST)
                items[count++] = tag;
        }
    return (struct regime_tags){ count, items };
}

struct regime_tags episodic_regime_from_body(struct arena *arena, const struct objects *map)
{
    const struct regime_in *given = map->items;
    struct buf out = { .arena = arena };
    buf_char(&out, '{');
    for (size_t i = 0; i < map->count; i++) {
        buf_json_key(&out, given[i].name);
        buf_text(&out, given[i].value);
    }
    buf_char(&out, '}');
    return episodic_regime_from_json(arena, buf_string(&out));
}

/* The signals that are not regime tags. */
static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    { "new_filing_since", offsetof(struct rerun_signals, new_filing) },
    { "guidance_update_since", offsetof(struct rerun_signals, guidance_update) },
};
enum { FLAGS = sizeof flags / sizeof *flags };

static enum err take_flag(struct call *c, const char *field, const struct regime_in *signal, bool *flag)
{
    *flag = strcmp(signal->value, "true") == 0;
    if (*flag || strcmp(signal->value, "false") == 0)
        return OK;
    return problem_field(&c->problem, arena_fmt(&c->arena, "%s.%s", field, signal->name), FAULT_WRONG_TYPE,
                         "must be true or false");
}

enum err episodic_rerun_signals(struct call *c, const char *field, const struct objects *map,
                                struct rerun_signals *out)
{
    const struct regime_in *given = map->items;
    struct regime_in *rest = arena_alloc(&c->arena, (map->count + 1) * sizeof *rest);
    struct objects regime = { .items = rest };
    enum err err = OK;
    *out = (struct rerun_signals){ 0 };
    for (size_t i = 0; i < map->count; i++) {
        size_t f = 0;
        while (f < FLAGS && strcmp(flags[f].name, given[i].name) != 0)
            f++;
        if (f == FLAGS)
            rest[regime.count++] = given[i];
        else if (take_flag(c, field, &given[i], (bool *)((char *)out + flags[f].offset)) != OK)
            err = ERR_INVALID_FIELDS;
    }
    if (regime.count > RERUN_TAGS_MOST)
        err = problem_field(&c->problem, field, FAULT_TOO_MANY, "has more than %d regime tags",
                            RERUN_TAGS_MOST);
    out->regime = episodic_regime_from_body(&c->arena, &regime);
    return err;
}

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

static void put_names(struct buf *out, const char *key, const char *const *names, size_t count)
{
    buf_json_key(out, key);
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_char(out, ',');
        buf_json_string(out, names[i]);
    }
    buf_char(out, ']');
}

void episodic_prior_json(struct buf *out, const struct rows *prior, const struct rerun *r)
{
    const char *reasons[RERUN_REASONS];
    size_t count = 0;
    for (int i = 0; i < RERUN_REASONS; i++)
        if (r->reasons & 1U << i)
            reasons[count++] = rerun_reason_names[i];
    put_names(out, "reasons", reasons, count);
    buf_json_key(out, "regime_keys");
    buf_char(out, '{');
    put_names(out, "changed", r->changed, r->changed_count);
    put_names(out, "unknown", r->unknown, r->unknown_count);
    buf_char(out, '}');
    buf_json_key(out, "prior");
    if (episodic_prior_exists(prior))
        rows_json(out, prior, 0);
    else
        buf_text(out, "null");
    buf_json_key(out, "prior_age_days");
    buf_text(out, episodic_prior_exists(prior) ? rows_text(prior, 0, &prior_row._age_days) : "null");
}

/* ---- the route ---- */

/* Replies with the prior as it was before this reuse is counted. */
static enum err should_rerun(struct call *c)
{
    struct rerun_in *in = c->in;
    struct rerun_signals signals;
    struct rows *prior;
    TRY(episodic_rerun_signals(c, "new_signals", &in->new_signals, &signals));
    TRY(query_one(c, &episode_prior, in, NULL, &prior));
    const struct rerun r = episodic_prior_decide(c, prior, &signals);
    struct buf *out = call_reply_json(c, 200);
    buf_char(out, '{');
    buf_json_key(out, "rerun");
    buf_json_bool(out, r.reasons != 0);
    episodic_prior_json(out, prior, &r);
    buf_char(out, '}');
    if (r.reasons)
        return OK;
    in->prior_id = rows_text(prior, 0, &prior_row.id);
    return query_run(c, &episode_reuse, in);
}

const struct route rerun_routes[] = {
    { POST, "/v1/episodic/should_rerun", should_rerun, INPUT(rerun_fields, struct rerun_in),
      .role = ROLE_RESEARCHER, .waits = true },
    END_ROUTES,
};

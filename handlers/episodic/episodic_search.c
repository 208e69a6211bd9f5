/* Search in the episodic memory: what is asked for, in which mode, and what the answer says of it. */
#include <string.h>

#include "core/base/vector.h"
#include "core/episodic/provenance.h"
#include "handlers/episodic/episodic.h"
#include "handlers/episodic/episodic_find.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/backfill.h"

enum { MOST_RECORDED = 100 };

struct search_in {
    const char *text, *model, *id, *mode, *ticker, *task_type, *source, *min_confidence, *since, *until,
        *regime_only, *regime_penalty, *as_of, *record;
    struct texts vector;
    struct objects regime; /* of struct regime_in */
    int64_t k;
};

/* clang-format off */
#define S(kind, member, ...) FIELD(FROM_BODY, kind, struct search_in, member, __VA_ARGS__)
#define ASKED \
    S(KIND_TEXT, text, .min = 1, .max = 4000), \
    S(KIND_NUMBERS, vector, .min = 1, .max = VECTOR_MOST), \
    S(KIND_LINE, model, .min = 1, .max = 100), \
    S(KIND_UUID, id), \
    S(KIND_CHOICE, mode, .choices = mode_names, .fallback = "hybrid"), \
    S(KIND_INT, k, .min = 1, .max = 100, .fallback = "5")
#define FILTER \
    S(KIND_LINE, ticker, .min = 1, .max = 64), \
    S(KIND_LINE, task_type, .min = 1, .max = 64), \
    S(KIND_CHOICE, source, .choices = provenance_names), \
    S(KIND_NUMBER, min_confidence, .min = 0, .max = 1), \
    S(KIND_TIME, since), \
    S(KIND_TIME, until), \
    REGIME_FIELD(struct search_in, regime), \
    S(KIND_BOOL, regime_only, .fallback = "false"), \
    S(KIND_NUMBER, regime_penalty, .min = 0, .max = 1, .fallback = "0.1")

static const char *const mode_names[] = { "hybrid", "vector", "text", NULL };
static const struct field asked_fields[] = { ASKED, END_FIELDS };
static const struct field filter_fields[] = { FILTER, END_FIELDS };
static const struct field search_fields[] = {
    ASKED, FILTER,
    S(KIND_TIME, as_of),
    S(KIND_BOOL, record, .fallback = "false"),
    END_FIELDS,
};

/* What a record is made of; the first two are the request itself. */
struct record_in {
    const struct search_in *query, *filters;
    const char *as_of, *candidates;
    struct texts ids;
};
#define R(kind, member, ...) FIELD(COMPUTED, kind, struct record_in, member, __VA_ARGS__)
static const struct field record_fields[] = {
    R(KIND_OBJECT, query, SUB(asked_fields, struct search_in)), R(KIND_OBJECT, filters, SUB(filter_fields, struct search_in)),
    R(KIND_TIME, as_of), R(KIND_TEXT, candidates), R(KIND_UUIDS, ids),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(recorded, id);
QUERY(retrieval_record, RETRIEVAL_RECORD, record_fields, READS(recorded));

/* What a mode looks at. */
struct search {
    bool by_meaning, by_words;
    const char *degraded; /* why it looked at less than it was asked to */
    struct finding finding;
};

/* ---- what is asked for ---- */

/* Adds the fault if it is one, so that all of them are told at once. */
static void refuse_if(struct call *c, bool bad, const char *field, enum fault fault, const char *why)
{
    if (bad)
        (void)problem_field(&c->problem, field, fault, "%s", why);
}

static enum err check(struct call *c, const struct search_in *in)
{
    const bool vector = in->vector.count, meaning = strcmp(in->mode, "text") != 0;
    refuse_if(c, !in->text && !vector && !in->id, "text", FAULT_REQUIRED,
              "a search needs a text, a vector with its model, or the id of an entry");
    refuse_if(c, in->id && in->text, "id", FAULT_NOT_TOGETHER, "cannot be given together with a text");
    refuse_if(c, in->id && vector, "id", FAULT_NOT_TOGETHER, "cannot be given together with a vector");
    refuse_if(c, vector && !in->model, "model", FAULT_REQUIRED,
              "is required with a vector: vectors of two models are never compared");
    refuse_if(c, !vector && in->model, "vector", FAULT_REQUIRED, "is required with a model");
    refuse_if(c, !meaning && vector && !in->text, "text", FAULT_REQUIRED, "is required in the mode text");
    refuse_if(c, strcmp(in->regime_only, "true") == 0 && !in->regime.count, "regime", FAULT_REQUIRED,
              "is required with regime_only");
    return c->problem.count ? ERR_INVALID_FIELDS : OK;
}

static struct finding finding_of(struct call *c, const struct search_in *in)
{
    return (struct finding){
        .as_of = in->as_of ? in->as_of : c->now,
        .past = in->as_of,
        .ticker = in->ticker,
        .task_type = in->task_type,
        .source = in->source,
        .min_confidence = in->min_confidence,
        .since = in->since,
        .until = in->until,
        .id = in->id,
        .regime_only = in->regime_only,
        .regime_penalty = in->regime_penalty,
        .regime = in->regime,
        .k = in->k,
    };
}

/* The embedder is not there: words alone can do, unless only meaning was asked for. */
static enum err without_embedder(struct search *s, const char *why)
{
    if (!s->by_words)
        return ERR_EMBEDDER_UNAVAILABLE;
    s->by_meaning = false;
    s->degraded = why;
    return OK;
}

static enum err look_like_text(struct call *c, struct search *s, const char *text)
{
    enum err err = episodic_find_embed(c, &s->finding, text);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        return without_embedder(s, "embedder_unavailable");
    return err;
}

static enum err read_like(struct call *c, const struct search_in *in, struct rows **r)
{
    TRY(episodic_find_similar_row(c, in->id, in->as_of ? in->as_of : c->now, r));
    if (!rows_count(*r))
        return problem_field(&c->problem, "id", FAULT_UNKNOWN_REFERENCE, "there is no entry %s", in->id);
    return OK;
}

static enum err look_like_entry(struct call *c, struct search *s, const struct search_in *in)
{
    struct rows *r;
    TRY(read_like(c, in, &r));
    if (s->by_words)
        s->finding.words = rows_text(r, 0, &episodic_similar_row.question);
    if (!s->by_meaning)
        return OK;
    if (!rows_text(r, 0, &episodic_similar_row.direction))
        return without_embedder(s, "no_vector");
    episodic_find_set_row(&s->finding, r);
    return OK;
}

static enum err look_for(struct call *c, struct search *s, const struct search_in *in)
{
    if (in->id)
        return look_like_entry(c, s, in);
    if (s->by_words)
        s->finding.words = in->text;
    if (!s->by_meaning)
        return OK;
    return in->vector.count ? episodic_find_set_vector(c, &s->finding, &in->vector, in->model)
                            : look_like_text(c, s, in->text);
}

/* ---- the answer ---- */

static enum err record(struct call *c, const struct search_in *in, const struct search *s, const char **id)
{
    struct buf candidates = { .arena = &c->arena };
    struct rows *r;
    episodic_find_candidates_json(&candidates, &s->finding, MOST_RECORDED);
    const struct record_in values = { in, in, s->finding.as_of, buf_string(&candidates), s->finding.ids };
    TRY(query_one(c, &retrieval_record, &values, NULL, &r));
    *id = rows_text(r, 0, &recorded.id);
    return OK;
}

static void put_found(struct buf *out, const struct search_in *in, const struct search *s,
                      const char *retrieval_id)
{
    const struct finding *f = &s->finding;
    buf_fmt(out, "{\"mode\":\"%s\",\"model\":", in->mode);
    buf_json_string(out, s->by_meaning ? f->space : NULL);
    buf_fmt(out, ",\"exact\":%s,\"degraded\":", !s->by_meaning ? "null" : f->exact ? "true" : "false");
    buf_json_string(out, s->degraded);
    buf_fmt(out, ",\"pending\":%lld,\"items\":[", (long long)f->pending);
    for (size_t i = 0; i < f->ids.count; i++) {
        if (i)
            buf_char(out, ',');
        episodic_find_json(out, f, i);
    }
    buf_text(out, "],\"retrieval_id\":");
    buf_json_string(out, retrieval_id);
    buf_char(out, '}');
}

static enum err episodic_search(struct call *c)
{
    const struct search_in *in = c->in;
    const char *retrieval_id = NULL;
    TRY(check(c, in));
    struct search s = {
        .by_meaning = strcmp(in->mode, "text") != 0,
        .by_words = strcmp(in->mode, "vector") != 0 && (in->text || in->id),
        .finding = finding_of(c, in),
    };
    TRY(look_for(c, &s, in));
    TRY(episodic_find_run(c, &s.finding));
    if (strcmp(in->record, "true") == 0)
        TRY(record(c, in, &s, &retrieval_id));
    put_found(call_reply_json(c, 200), in, &s, retrieval_id);
    if (s.finding.pending) {
        c->reply.no_store = true;
        backfill_found(); /* another instance may have left them */
    }
    return OK;
}

const struct route episodic_search_routes[] = {
    { POST, "/v1/episodic/search", episodic_search, INPUT(search_fields, struct search_in),
      .role = ROLE_READER, .waits = true, .safe = true, .models = true },
    END_ROUTES,
};

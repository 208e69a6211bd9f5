/* Stores entries of the episodic memory: checks, hashes and embeds them, and stores each once. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/sha256.h"
#include "core/base/vector.h"
#include "core/episodic/provenance.h"
#include "handlers/episodic/episodic.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/find.h"
#include "handlers/kit/policy.h"
#include "server/backfill.h"
#include "server/embedder.h"
#include "server/id.h"

enum { DAY_SECONDS = 86400, STORE_TRIES = 3 }; /* if others delete the same entries in between */

/* clang-format off */
#define E(kind, member, ...) FIELD(FROM_BODY, kind, struct episode_in, member, __VA_ARGS__)
const struct field episode_fields[] = {
    E(KIND_LINE, ticker, .required = true, .min = 1, .max = 64),
    E(KIND_LINE, task_type, .required = true, .min = 1, .max = 64),
    E(KIND_TEXT, question, .required = true, .min = 1, .max = 4000),
    E(KIND_TEXT, answer, .required = true, .min = 1, .max = 50000),
    E(KIND_NUMBER, probability, .min = 0, .max = 1),
    E(KIND_NUMBER, confidence, .min = 0, .max = 1),
    E(KIND_CHOICE, source, .choices = provenance_names, .fallback = PROVENANCE_DEFAULT),
    E(KIND_TEXTS, source_citations, .max = 64, .item_max = 1000),
    REGIME_FIELD(struct episode_in, regime_tag),
    E(KIND_TIME, created_at, .fallback = "now"),
    E(KIND_INT, ttl_seconds, .min = 1, .max = 315360000),
    E(KIND_INT, ttl_days, .min = 1, .max = 3650),
    E(KIND_NAME, observation_type),
    E(KIND_NUMBERS, embedding, .min = 1, .max = VECTOR_MAX),
    E(KIND_LINE, embedding_model, .min = 1, .max = 100),
    END_FIELDS,
};

/* Parameters of the statements. */
struct store_params {
    const char *entries, *as_of;
    struct texts hashes;
};
#define P(kind, member) FIELD(COMPUTED, kind, struct store_params, member)
static const struct field param_fields[] = {
    P(KIND_TEXT, entries), P(KIND_TIME, as_of), P(KIND_TEXTS, hashes),
    END_FIELDS,
};
static const struct field rule_fields[] = {
    FIELD(COMPUTED, KIND_NAME, struct episode_rule, observation_type),
    FIELD(COMPUTED, KIND_TEXT, struct episode_rule, default_types),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(checked, listed, allowed, ttl_seconds);
QUERY(policy_check, WRITE_POLICY_CHECK, rule_fields, READS(checked), .missing = "write policy");
COLUMNS(stored, id, embedding_status, _hash, _pending);
QUERY(episode_known, EPISODE_KNOWN, param_fields, READS(stored));
QUERY(episode_store, EPISODE_STORE, param_fields, READS(stored));

/* ---- checks ---- */

/* NULs separate the parts, so that "A", "BC" and "AB", "C" have different hashes. */
static const char *content_hash(struct arena *arena, const struct episode_in *in)
{
    const char *const parts[] = { in->ticker, in->task_type, in->created_at, in->question, in->answer };
    struct buf all = { .arena = arena };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        buf_add(&all, parts[i], strlen(parts[i]) + (i + 1 < sizeof parts / sizeof *parts));
    char *hex = arena_alloc(arena, SHA256_HEX_SIZE);
    sha256_hex(all.data, all.len, hex);
    return hex;
}

static enum err check_vector(struct call *c, const struct episode_in *in, struct arena *arena,
                             struct episode *e)
{
    if (!in->embedding_model)
        return problem_field(&c->problem, "embedding_model", FAULT_REQUIRED,
                             "is required with an embedding: vectors of two models are never compared");
    TRY(find_read_vector(c, arena, "embedding", &in->embedding, in->embedding_model, &e->vector));
    e->dim = in->embedding.count;
    e->model = in->embedding_model;
    e->supplied = true;
    return OK;
}

enum err episodic_check(struct call *c, const struct episode_in *in, struct arena *arena, struct episode *e)
{
    *e = (struct episode){ .in = in, .id = id_new(arena), .hash = content_hash(arena, in) };
    if (in->ttl_seconds > 0 && in->ttl_days > 0)
        return problem_field(&c->problem, "ttl_days", FAULT_NOT_TOGETHER,
                             "give either ttl_seconds or ttl_days");
    if (in->ttl_seconds > 0)
        e->ttl_seconds = in->ttl_seconds;
    else if (in->ttl_days > 0)
        e->ttl_seconds = in->ttl_days * DAY_SECONDS;
    if (in->embedding.count)
        return check_vector(c, in, arena, e);
    if (in->embedding_model)
        return problem_field(&c->problem, "embedding", FAULT_REQUIRED, "is required with an embedding_model");
    return OK;
}

static enum err ask_policy(struct call *c, struct arena *arena, struct episode_rule *rule, const char *type)
{
    struct rows *r;
    rule->default_types = policy_default_types(arena);
    rule->observation_type = type;
    TRY(query_one(c, &policy_check, rule, arena, &r));
    rule->listed = row_bool(r, 0, &checked.listed);
    rule->allowed = row_bool(r, 0, &checked.allowed);
    rule->ttl_seconds = row_int(r, 0, &checked.ttl_seconds, 0);
    return OK;
}

enum err episodic_allow(struct call *c, struct arena *arena, struct episode_rule *rule, struct episode *e)
{
    const char *type = e->in->observation_type;
    if (!type)
        return OK;
    if (!rule->observation_type || strcmp(rule->observation_type, type) != 0)
        TRY(ask_policy(c, arena, rule, type));
    if (!rule->allowed)
        return policy_denied(c, type, rule->listed);
    if (!e->ttl_seconds)
        e->ttl_seconds = rule->ttl_seconds;
    return OK;
}

/* ---- before the transaction ---- */

const char *episodic_embed_text(struct arena *arena, const char *question, const char *answer)
{
    return arena_fmt(arena, "%s\n%s", question, answer);
}

/* The hashes of entries without a row. */
static struct texts missing(struct arena *arena, const struct episode *list, size_t count)
{
    struct texts hashes = { .items = arena_alloc(arena, count * sizeof *hashes.items) };
    for (size_t i = 0; i < count; i++)
        if (!list[i].rows)
            hashes.items[hashes.count++] = list[i].hash;
    return hashes;
}

static void take_rows(struct episode *list, size_t count, const struct rows *r, bool known)
{
    for (int row = 0; row < rows_count(r); row++) {
        const char *hash = rows_text(r, row, &stored._hash);
        for (size_t i = 0; i < count; i++)
            if (strcmp(list[i].hash, hash) == 0) {
                list[i].rows = r;
                list[i].row = row;
                list[i].known = known;
            }
    }
}

static enum err find_known(struct call *c, struct arena *arena, struct episode *list, size_t count)
{
    const struct store_params params = { .hashes = missing(arena, list, count), .as_of = LATEST };
    struct rows *r;
    TRY(query_rows(c, &episode_known, &params, arena, &r));
    take_rows(list, count, r, true);
    return OK;
}

enum err episodic_prepare(struct call *c, struct arena *arena, struct episode *list, size_t count)
{
    const struct embedder_space own = embedder_space(c->loop);
    const char **texts = arena_alloc(arena, count * sizeof *texts);
    struct episode **embedded = arena_alloc(arena, count * sizeof *embedded);
    size_t n = 0;
    TRY(find_known(c, arena, list, count));
    for (size_t i = 0; i < count; i++)
        if (!list[i].known && !list[i].vector) {
            embedded[n] = &list[i];
            texts[n++] = episodic_embed_text(arena, list[i].in->question, list[i].in->answer);
        }
    if (!n)
        return OK;
    float *vectors = arena_alloc(arena, n * own.dim * sizeof *vectors);
    enum err err = embedder_embed(&c->task, texts, n, vectors);
    if (err == ERR_EMBEDDER_UNAVAILABLE)
        return OK;
    TRY(err);
    backfill_embedder_recovered();
    for (size_t i = 0; i < n; i++) {
        if (!embedder_has_vector(vectors + i * own.dim, own.dim))
            continue;
        embedded[i]->vector = vectors + i * own.dim;
        embedded[i]->dim = own.dim;
        embedded[i]->model = own.model;
    }
    return OK;
}

/* ---- in the transaction ---- */

static void put_vector(struct buf *out, const float *vector, size_t dim)
{
    const int width = vector_column(dim);
    json_put_int(out, "width", width);
    buf_json_key(out, "vector");
    buf_char(out, '"');
    vector_text(out, vector, dim, (size_t)width);
    buf_char(out, '"');
}

/* The entry as a record of :entries. */
static void put_entry(struct buf *out, const struct episode *e)
{
    const struct episode_in *in = e->in;
    buf_char(out, '{');
    json_put_text(out, "id", e->id);
    json_put_text(out, "content_hash", e->hash);
    json_put_text(out, "ticker", in->ticker);
    json_put_text(out, "task_type", in->task_type);
    json_put_text(out, "created_at", in->created_at);
    json_put_text(out, "question", in->question);
    json_put_text(out, "answer", in->answer);
    json_put_raw(out, "probability", in->probability);
    json_put_raw(out, "confidence", in->confidence ? in->confidence : provenance_confidence(in->source));
    json_put_text(out, "source", in->source);
    json_put_texts(out, "source_citations", in->source_citations.items, in->source_citations.count);
    buf_json_key(out, "regime_tag");
    episodic_regime_json(out, &in->regime_tag);
    if (e->ttl_seconds)
        json_put_int(out, "ttl_seconds", e->ttl_seconds);
    json_put_text(out, "observation_type", in->observation_type);
    json_put_text(out, "embedding_status", e->supplied ? "supplied" : e->vector ? "embedded" : "pending");
    if (e->vector) {
        json_put_text(out, "embedding_model", e->model);
        json_put_int(out, "embedding_dim", (int64_t)e->dim);
        put_vector(out, e->vector, e->dim);
    }
    buf_char(out, '}');
}

static enum err store_missing(struct call *c, struct arena *arena, struct episode *list, size_t count)
{
    struct buf out = { .arena = arena };
    struct rows *r;
    buf_char(&out, '[');
    for (size_t i = 0; i < count; i++)
        if (!list[i].rows) {
            if (out.len > 1)
                buf_char(&out, ',');
            put_entry(&out, &list[i]);
        }
    buf_char(&out, ']');
    const struct store_params params = { .entries = buf_string(&out), .as_of = LATEST };
    TRY(query_rows(c, &episode_store, &params, arena, &r));
    take_rows(list, count, r, false);
    return OK;
}

/* Starts the backfill if any entry of the owner is pending. */
static void note_pending(struct call *c, const struct episode *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        c->left_pending |= row_bool(list[i].rows, list[i].row, &stored._pending) ||
                           strcmp(episodic_status(&list[i]), "pending") == 0;
}

static bool any_known(const struct episode *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].known)
            return true;
    return false;
}

/* An entry that was neither stored nor found is being stored by another request. The insert has waited for
 * that transaction, so that the entry can be found now. */
enum err episodic_store(struct call *c, struct arena *arena, struct episode *list, size_t count)
{
    for (size_t i = 0; i < count; i++) /* the transaction may be a retry */
        if (!list[i].known)
            list[i].rows = NULL;
    for (int i = 0; i < STORE_TRIES; i++) {
        if (!missing(arena, list, count).count) {
            note_pending(c, list, count);
            return any_known(list, count) ? query_durable(c) : OK;
        }
        TRY(store_missing(c, arena, list, count));
        if (missing(arena, list, count).count)
            TRY(find_known(c, arena, list, count));
    }
    return problem_set(&c->problem, ERR_OVERLOADED, "the same entries are stored and deleted all the time");
}

/* ---- a stored entry ---- */

const char *episodic_id(const struct episode *e)
{
    return rows_text(e->rows, e->row, &stored.id);
}

const char *episodic_status(const struct episode *e)
{
    return rows_text(e->rows, e->row, &stored.embedding_status);
}

void episodic_json(struct buf *out, const struct episode *e)
{
    rows_json(out, e->rows, e->row);
}

void episodic_members(struct buf *out, const struct episode *e)
{
    rows_members(out, e->rows, e->row);
}

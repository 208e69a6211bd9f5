/* Entries of the episodic memory as several handlers take, make and show them. */
#ifndef DAYBOOK_HANDLERS_EPISODIC_EPISODIC_H
#define DAYBOOK_HANDLERS_EPISODIC_EPISODIC_H

#include "core/episodic/rerun.h"
#include "server/dispatch/query.h"

/* One name and its value, as JSON, of a regime. */
struct regime_in {
    const char *name, *value;
};
extern const struct field regime_fields[]; /* the two rows of a KIND_MAP */

/* Rows of a body: a regime, and signals, which are the current regime and two names of our own. */
#define REGIME_FIELD(type, member) \
    FIELD(FROM_BODY, KIND_MAP, type, member, .max = RERUN_TAGS_MOST, SUB(regime_fields, struct regime_in))
#define SIGNALS_FIELD(type, member) \
    FIELD(FROM_BODY, KIND_MAP, type, member, .max = RERUN_TAGS_MOST + 2, SUB(regime_fields, struct regime_in))

/* A regime as core compares it: of a body, or as the database gives it. */
struct regime_tags episodic_regime_from_body(struct arena *arena, const struct objects *map);
struct regime_tags episodic_regime_from_json(struct arena *arena, const char *json);
/* The regime of a body as a JSON object. */
void episodic_regime_json(struct buf *out, const struct objects *map);

/* The signals in the field of that name. What is wrong with them is in c->problem. */
enum err episodic_rerun_signals(struct call *c, const char *field, const struct objects *map,
                                struct rerun_signals *out) must_check;

/* What EPISODE_PRIOR and RESEARCH_PRIOR find: one row, which is null when there is no prior. */
SHARED_COLUMNS(prior_row, id, question, answer, probability, confidence, regime_tag, _age_days);
/* Whether there is a prior, and whether it can be used again. */
bool episodic_prior_exists(const struct rows *prior);
struct rerun episodic_prior_decide(struct call *c, const struct rows *prior,
                                   const struct rerun_signals *signals);
/* The members "reasons":[…],"regime_keys":{…},"prior":…,"prior_age_days":… of an answer. */
void episodic_prior_json(struct buf *out, const struct rows *prior, const struct rerun *r);

/* An entry as it is posted. */
struct episode_in {
    const char *ticker, *task_type, *question, *answer, *probability, *confidence, *source, *created_at,
        *embedding_model;
    struct texts source_citations, embedding;
    struct objects regime_tag; /* of struct regime_in */
    int64_t ttl_seconds;       /* FIELD_NO_INT: for ever */
};
extern const struct field episode_fields[]; /* of a body */

/* An entry on its way to the store. */
struct episode {
    const struct episode_in *in;
    const char *id, *hash, *model;
    const float *vector; /* of length 1; NULL: none yet */
    size_t dim;
    bool supplied;           /* the vector is the caller's */
    bool known;              /* it was stored before this request */
    const struct rows *rows; /* once it is stored, what it is there */
    int row;
};

/* Checks what no single field shows; what is wrong is in c->problem. */
enum err episodic_check(struct call *c, const struct episode_in *in, struct arena *arena,
                        struct episode *e) must_check;

/* The rest keeps what it makes for the entries, and their rows, in `arena`. */

/* Looks which of them are known already, and embeds the others, all in one call. When the embedder is not
 * there they stay without a vector, which is no error: server/backfill embeds them. Waits, so never inside a
 * transaction. */
enum err episodic_prepare(struct call *c, struct arena *arena, struct episode *list, size_t count) must_check;

/* Stores those that are not known, with their vectors; inside the caller's transaction. No two of the list
 * may have the same hash. Then every entry has its `rows`. */
enum err episodic_store(struct call *c, struct arena *arena, struct episode *list, size_t count) must_check;

const char *episodic_id(const struct episode *e);
const char *episodic_status(const struct episode *e); /* of its embedding */
/* The entry, as the API shows it. */
void episodic_json(struct buf *out, const struct episode *e);
void episodic_members(struct buf *out, const struct episode *e); /* without the braces */

/* What is embedded of an entry. */
const char *episodic_embed_text(struct arena *arena, const char *question, const char *answer);

#endif
